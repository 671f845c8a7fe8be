/** Mutation testing of what decides: `node test/mutation/check.mjs` runs it and judges what survived. */
export default {
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
  mutate: ['src/core/grant/*.ts', 'src/core/files/{access,path,reach}.ts', '!src/**/*.test.ts'],
  coverageAnalysis: 'perTest',
  // Others may need the machine too, and a mutant that never ends is told by the clock.
  concurrency: 1,
  timeoutMS: 10_000,
  reporters: ['json', 'progress-append-only'],
  jsonReporter: { fileName: 'coverage/mutation.json' },
  tempDirName: 'coverage/mutation',
  ignorePatterns: ['coverage', 'dist', 'bench', 'docs', 'examples'],
  allowEmpty: false,
  disableTypeChecks: false,
}
