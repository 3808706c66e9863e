#!/bin/sh
# isthmus beside YAC and OASIS3-MCT: one remapping, the same grids, weights and layouts.
#
#   apt-get install liboasis3-dev libopenmpi-dev openmpi-bin libnetcdff-dev gfortran
#   pip install mpi4py numpy scipy yac isthmus             # yac's wheel is for Open MPI 4.1
#   docs/results/couplers/couplers.sh [SIDES] [RANKS OF A GROUP] [ROUNDS]
#
# PYTHON is the python to take. Whatever is not there is left out, and that is said.
# OASIS3-MCT is Debian's, of 2012; newer ones are said to be faster.
sides=${1:-"500 1000"}; ranks=${2:-"2 4 8"}; rounds=${3:-100}
here=$(dirname "$(readlink -f "$0")")
python=$(command -v "${PYTHON:-python3}")  # Open MPI looks for names beside mpiexec first
mpiexec=$(command -v mpiexec.openmpi || command -v mpiexec)
run="$mpiexec --oversubscribe --allow-run-as-root"
work=$(mktemp -d); cd "$work" || exit 1
if [ -n "$OASIS" ]; then cp "$OASIS" oasis  # built elsewhere, with its libraries beside
elif command -v mpif90.openmpi >/dev/null && [ -d /usr/include/psmile ]; then
    mpif90.openmpi -O2 -I/usr/include/psmile -I/usr/include/mct "$here/exchange.f90" \
        -o oasis -lpsmile.MPI1 -lmct -lmpeu -lscrip $(nf-config --flibs)
else echo "OASIS3-MCT: not built, as it is not installed"; fi

oasis() {  # side, ranks, who multiplies, in which order
    cat > namcouple <<END
 \$NFIELDS
1
 \$END
 \$NBMODEL
2 source target 200 200
 \$END
 \$RUNTIME
100000
 \$END
 \$NLOGPRT
0 0
 \$END
 \$STRINGS
FSEND FRECV 1 1 1 rst.nc EXPORTED
$1 $1 $1 $1 srcg dstg LAG=0
P 0 P 0
MAPPING
weights-$1.scrip.nc $3 $4
 \$END
END
    $run -n "$2" ./oasis source "$1" "$rounds" : -n "$2" ./oasis target "$1" "$rounds" \
        > log 2>&1 || { echo "oasis-$3: failed"; tail -3 log; return; }
    PYTHONPATH=$here "$python" - "$1" "$2" "$3" <<END
import sys
import numpy as np
from grids import expected, strip
side, half, name = int(sys.argv[1]), int(sys.argv[2]), {"src": "source", "dst": "target"}[sys.argv[3]]
setup, *times = map(float, open("times").read().split())
low, middle, high = np.percentile(times[2:], [10, 50, 90]) * 1e3
right = expected(side)
difference = max(
    np.abs(np.fromfile(f"got_{k}") - right[strip(side, k, half, True)]).max()
    for k in range(half)
)
print(f"oasis-{name:6s} {side}x{side} {half}+{half}  set-up {setup:7.3f} s  exchange "
      f"{middle:7.2f} ms (10-90 %: {low:.2f}-{high:.2f})  difference {difference:.1e}")
END
}

for side in $sides; do
    for kind in scrip yac; do
        "$python" "$here/grids.py" "$side" $kind "weights-$side.$kind.nc"
    done
    for n in $ranks; do
        for name in isthmus yac-target yac-source; do
            $run -n $((2 * n)) "$python" -m mpi4py "$here/exchange.py" $name "$side" "$rounds" \
                2> log || { echo "$name: failed"; grep -v '^$' log | tail -3; }
        done
        [ -x ./oasis ] && oasis "$side" "$n" dst bfb && oasis "$side" "$n" src sum
    done
done
rm -rf "$work"
