#!/usr/bin/env bash
# Checks the models of protocols with Spin, exhaustively: each must hold, and each of its mutants must not. A model says in
# its first comment what it models; `#ifdef MUTANT_...` is a fault.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v spin >/dev/null || ci/debian.sh spin
command -v gcc >/dev/null || ci/debian.sh gcc
folder=$PWD/build/models
mkdir -p "$folder"

# What Spin found: "errors: 0", and the number of states.
search() {
    local model=$1 mutant=$2
    cd "$folder"
    rm -f pan* ./*.trail
    spin -a ${mutant:+-D"$mutant"} "$model" >/dev/null
    gcc -O2 -w -DSAFETY -DMEMLIM=2048 -o pan pan.c
    timeout 300 ./pan -m1000000 >log
    ! grep -q "max search depth too small\|out of memory\|error: " log || { cat log; exit 1; }
    grep -o "errors: [0-9]*" log
    grep -o "[0-9.e+]* states, stored" log
}

for model in "$PWD"/src/ftcuda/_core/*/models/*.pml; do
    name=$(basename "$model")
    found=$(search "$model" "")
    [[ $found == "errors: 0"* ]] || { echo "$name: $found"; exit 1; }
    echo "$name holds: ${found#*$'\n'}"
    mapfile -t mutants < <(grep -o "MUTANT_[A-Z_]*" "$model" | sort -u)
    for mutant in "${mutants[@]}"; do
        found=$(search "$model" "$mutant")
        [[ $found != "errors: 0"* ]] || { echo "$name holds with $mutant"; exit 1; }
        echo "  not with $mutant"
    done
done
echo "models: clean"
