# Sourced before a program is linked: $BLAS is then what links BLAS and LAPACK, by whichever of the
# usual libraries the loaded modules bring.
for BLAS in "-lflexiblas" "-lopenblas" "-llapack -lblas" ""; do
    echo 'void dgesv_(void); int main(void) { dgesv_(); return 0; }' |
        mpicc -x c - -o find_blas.out $BLAS 2>/dev/null && break
done
rm -f find_blas.out
