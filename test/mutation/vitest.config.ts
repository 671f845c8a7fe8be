import { defineConfig } from 'vitest/config'

/** The tests that mutants are tried on: quick ones, and the laws on few chains. None that looks at the clock. */
export default defineConfig({
  test: {
    include: ['src/{grant,files}/*.test.ts', 'test/laws/permission.test.ts'],
    env: { LEGATE_CHAINS: '300' },
  },
})
