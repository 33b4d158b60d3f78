// Teams of TEAM invocations that are ACROSS apart: neighbours have neighbouring items, and read memory side by side.
const ACROSS: u32 = WG / TEAM;
fn item_of(lane: u32) -> u32 { return lane % ACROSS; }
fn member_of(lane: u32) -> u32 { return lane / ACROSS; }
