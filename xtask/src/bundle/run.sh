#!/bin/sh
# Checks and times the delegate on this machine's GPU: sh run.sh [LOGS] [MODEL.pte ...]
#
# Prints one line for each test program, then perplexity, and the speeds of the packed models and of those named; the whole
# output of each goes into the folder LOGS (./logs). Exits with 1 when something failed. These variables change what it does:
#   ETWGPU_BENCH    arguments of etwgpu-bench (--profile)
#   ETWGPU_CALLS    calls of each network (50)
#   ETWGPU_ONLY     runs only programs whose names match this pattern, such as bench-* (*)
#   ETWGPU_SKIP     leaves out programs whose names match this pattern (none)
#   ETWGPU_SECONDS  how long one program may take (900)
set -u

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:-logs}" || exit 2
logs=$(cd "${1:-logs}" && pwd)
[ $# -gt 0 ] && shift
failed=0
log=
: >"$logs/speeds.txt"

# Unpacks the pieces of a part, unless that was done since they came.
unpack() {
  name=$1
  set -- "$here/$name".tar.xz.*of*
  [ -e "$1" ] || return 1
  expected=${1##*of}
  if [ $# -ne "${expected#0}" ]; then
    echo "$name: $# of ${expected#0} pieces are here; it is left out"
    return 1
  fi
  [ -z "$(find "$@" -newer "$here/.$name" 2>&1)" ] && return 0
  if command -v xz >/dev/null; then
    cat "$@" | xz -dc | tar -xf - -C "$here"
  else
    cat "$@" | python3 -c 'import lzma, sys, tarfile
with lzma.open(sys.stdin.buffer) as packed, tarfile.open(fileobj=packed, mode="r|") as files:
    files.extractall(sys.argv[1])' "$here"
  fi && touch "$here/.$name"
}

# The system's Vulkan loader is preferred to the packed one, and a driver that a container was given to the system's.
find_vulkan() {
  { /sbin/ldconfig -p || ldconfig -p; } 2>/dev/null | grep -q 'libvulkan\.so\.1' ||
    LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$here/lib/vulkan
  [ -n "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ] && return
  for file in /usr/local/*/share/vulkan/icd.d/*.json; do
    [ -e "$file" ] && export VK_ICD_FILENAMES="$file"
  done
}

# Runs a program with its output in LOGS/NAME.txt, and prints its line.
check() {
  name=$1
  shift
  case $name in ${ETWGPU_SKIP:-}) return ;; ${ETWGPU_ONLY:-*}) ;; *) return ;; esac
  log=$logs/$name.txt
  start=$(date +%s.%N)
  $limit "$@" >"$log" 2>&1
  code=$?
  end=$(date +%s.%N)
  verdict=ok
  if [ $code -ne 0 ]; then
    verdict="FAILED, exit code $code"
    failed=$((failed + 1))
  fi
  awk -v name="$name" -v verdict="$verdict" -v seconds="$(echo "$end $start" | awk '{ print $1 - $2 }')" '
    /^test result: / { tests = 1; passed += $4; failed += $6 }
    /^[0-9]+ tests, [0-9]+ failed$/ { tests = 1; passed += $1 - $3; failed += $3 }
    END {
      counts = tests ? sprintf("%4d passed %4d failed", passed, failed) : ""
      printf "%-22s %23s %8.1f s  %s\n", name, counts, seconds, verdict
    }' "$log"
}

# The measurements in the output of etwgpu-bench that ran last, without its profile.
speeds() {
  echo
  grep -m 1 -o 'adapter .*' "$log"
  awk '/^profile of /{ exit } /^(model: |load: |device memory|host memory|  +median ms|prefill |decode )/' "$log"
}

unpack programs || { echo "run.sh: the programs cannot be unpacked" >&2; exit 2; }
unpack tiny
unpack smollm2
unpack nets
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export ETWGPU_BACKEND="$here/lib/libexecutorch_backend_webgpu.so"
export ETWGPU_MODELS="$here/models" ETWGPU_FIXTURES="$here/fixtures"
find_vulkan
smollm2=$here/models/smollm2-135m
perplexity=$smollm2-perplexity/smollm2-135m-perplexity
limit=
command -v timeout >/dev/null && limit="timeout ${ETWGPU_SECONDS:-900}"

for test in "$here"/bin/rust/*; do
  name=$(basename "$test")
  if [ "$name" = goldens ] && [ ! -d "$smollm2" ]; then
    check goldens "$test" --skip smollm2
  else
    check "$name" "$test"
  fi
done
for test in "$here"/bin/abi/*; do
  check "$(basename "$test")" "$test" "$here/fixtures/tiny_llama.pte" "$ETWGPU_BACKEND"
done
if [ -d "$smollm2" ]; then
  check chat "$here/bin/etwgpu-chat" --model "$smollm2/smollm2-135m.pte" --tokenizer "$smollm2/tokenizer.json" --raw \
    --prompt "The capital of France is"
  set -- "$smollm2/smollm2-135m.pte" "$@"
fi
if [ -e "$perplexity.pte" ]; then
  name=perplexity-smollm2
  check $name "$here/bin/etwgpu-bench" --model "$perplexity.pte" --perplexity "$perplexity.tokens" \
    --eager "$perplexity.perplexity.json"
  [ "$log" = "$logs/$name.txt" ] && { echo && awk '/^model: /, 0' "$log"; } >>"$logs/speeds.txt"
fi
for model in "$here/models/tiny/llama.pte" "$@"; do
  name=bench-$(basename "$model" .pte)
  check "$name" "$here/bin/etwgpu-bench" --model "$model" --json "$logs/$name.json" ${ETWGPU_BENCH:---profile}
  [ "$log" = "$logs/$name.txt" ] && speeds >>"$logs/speeds.txt"
done

if [ -e "$here/models/nets/nets.txt" ]; then
  cd "$here/models/nets" || exit 2
  echo >>"$logs/speeds.txt"
  while read -r net program inputs outputs tolerance _; do
    check "net-$net" "$here/bin/etwgpu_runner" --model_path "$program" --inputs "$inputs" --expect "$outputs" \
      --tolerance "$tolerance" --num_executions "${ETWGPU_CALLS:-50}"
    [ "$log" = "$logs/net-$net.txt" ] && awk -v net="$net" '
      /^first call: / { first = $3 } /^median call: / { median = $3 } /: largest difference: / { if ($NF > worst) worst = $NF }
      END { printf "%-24s largest difference %-9s first call %8.1f ms, median %8.2f ms\n", net, worst, first, median }
    ' "$log" >>"$logs/speeds.txt"
  done <nets.txt
fi

cat "$logs/speeds.txt"
[ $failed -eq 0 ] && echo "
all passed" || echo "
$failed programs failed; their output is in $logs"
[ $failed -eq 0 ]
