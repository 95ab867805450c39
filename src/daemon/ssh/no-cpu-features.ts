// Stands in the compiled program for the package `cpu-features`, which is native code that ssh2 asks for and can do without: left out
// it would be looked for where the program is started, and whatever lies there would run. `src/build.ts` puts it in place.
throw new Error("there is no native code in here");
