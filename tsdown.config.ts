import { defineConfig } from 'tsdown'

// A few files instead of one per source: importing the root costs what its files cost. Lazy imports stay files of their own.
export default defineConfig({
  entry: [
    'src/index.ts',
    'src/testing/index.ts',
    'src/grant/index.ts',
    'src/recipe/index.ts',
    'src/output/index.ts',
    'src/extension/prompt/index.ts',
    'src/store/memory.ts',
    'src/store/json.ts',
    'src/store/sqlite.ts',
    'src/cli/main.ts',
  ],
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  fixedExtension: false,
  dts: true,
  // Comments are in the types; without them the root is read a tenth faster.
  outputOptions: { comments: { jsdoc: false } },
  // Nothing of another package is copied in: what the sources import is a dependency, or the build fails.
  deps: { neverBundle: [/^node:/], onlyBundle: [] },
})
