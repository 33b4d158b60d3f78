// Teams of TEAM neighbours, each with an item of its own.
fn item_of(lane: u32) -> u32 { return lane / TEAM; }
fn member_of(lane: u32) -> u32 { return lane % TEAM; }
