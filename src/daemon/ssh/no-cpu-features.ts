// Replaces the package `cpu-features` in the compiled program. The package is optional native code of ssh2. If it were simply omitted, the
// program would search for it in the folder where it is started and run whatever is there. `src/build.ts` installs the replacement.
throw new Error("cpu-features is not part of the compiled program");
