import { defineConfig } from 'tsdown'

// One output file per source file: a lazy import stays a file of its own, and a stack trace names the room it came from.
export default defineConfig({
  entry: ['src/index.ts', 'src/testing/index.ts', 'src/store/memory.ts', 'src/store/sqlite.ts', 'src/cli/main.ts'],
  root: 'src',
  unbundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  fixedExtension: false,
  dts: true,
  // Nothing of another package is copied in: what the sources import is a dependency, or the build fails.
  deps: { neverBundle: [/^node:/], onlyBundle: [] },
})
