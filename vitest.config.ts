import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import manifest from './package.json' with { type: 'json' }

const unit = ['src/**/*.test.ts']
const house = ['test/architecture.test.ts', 'test/claims.test.ts', 'test/doors.test.ts', 'test/surface.test.ts']
const crash = ['test/crash/**/*.test.ts']
/** They have a database of their own, and other processes on it. */
const postgres = ['test/postgres/**/*.test.ts']
const suite = ['test/**/*.test.ts']
const browser = ['test/web/browser/**/*.test.ts']
/** They measure how fast a page answers: nothing else may run then. */
const page = ['test/web/browser/load.test.ts']
/** They replace a module for themselves, before anything else has loaded it. */
const alone = ['test/attack/paths-interleaved.test.ts', 'test/e2e/examples/contracts.test.ts']

const isFull = process.env['LEGATE_FULL'] === '1'
/**
 * On a busy machine a test may wait in vain. `npm test` tries it once more and names it at the end. Not where the failure names
 * the seed that repeats it, or where a graph is broken: those are found by chance, and a second try would not find them.
 */
const again = { retry: isFull ? 0 : { count: 1, condition: /^(?!.*(?:seed|the audit has found))/is } }

/** Every graph that a test makes is audited at its end. */
const setupFiles = ['test/support/audit-all.ts']
const common = { include: [...unit, ...suite], isolate: false, setupFiles, ...again }
const notCommon = [...house, ...crash, ...postgres, ...alone, ...browser]

/** With every in-memory state dropped before each node. Large figures are reached once, without. */
const forgetting = { LEGATE_FRESH: '1', LEGATE_FIGURES: '', LEGATE_FULL: '', LEGATE_STORES: isFull ? 'all' : 'one' }
/** What is not about agents, delegations, conversations, grants and the engine, and what is large: a second time only in full. */
const once = [
  'src/**',
  'test/{attack,cli,client,e2e,fields,files,graph,laws,model,prompt,recipe,runtime,server,sim,store}/**',
  'test/{surfaces,testing,tool,tools,web}/**',
  'test/operations.test.ts',
  'test/engine/{call-limits,cancel-dead,cancel-random,full-disk,lots,settle-killed,turns-of-owners}.test.ts',
  'test/conversation/history/{random,usage,whole}.test.ts',
  'test/conversation/live/{buffer,law}.test.ts',
]
const left = isFull ? [] : once

const HOURS = 4 * 3_600_000
// To read all rows again before each of 1,000 nodes takes its time.
const fresh = { env: forgetting, setupFiles: [...setupFiles, 'test/support/forget.ts'], testTimeout: 120_000 }
const usual = isFull ? { testTimeout: HOURS, hookTimeout: HOURS } : { testTimeout: 30_000 }
const slow = isFull ? usual : { testTimeout: 300_000, hookTimeout: 60_000 }

const inBrowser = {
  isolate: false,
  ...again,
  ...slow,
  globalSetup: 'test/web/support/start-browser.ts',
  expect: { poll: { timeout: 20_000, interval: 50 } },
}

/** Files go by their size, as long as nothing is known of their time. The last ones must not take long. */
const long = [
  'crash/random-kill',
  'crash/failpoints',
  'postgres/bench',
  'postgres/crash',
  'server/bench',
  'sim/simulation',
  'e2e/corpus/agents',
  'e2e/corpus/recipes',
  'e2e/examples/docs',
  'e2e/examples/examples',
  'cli/extensions',
  'cli/run-authority',
  'laws/growth/answer',
  'laws/growth/agent-file',
  'attack/doors',
  'engine/cancel-random',
  'conversation/history/whole',
]

class LongFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(specs)
    const projects = [...new Set(sorted.map(({ project }) => project))]
    const place = ({ project, moduleId }: TestSpecification) =>
      projects.indexOf(project) * 2 + (long.some((name) => moduleId.endsWith(`test/${name}.test.ts`)) ? 0 : 1)
    return sorted.toSorted((a, b) => place(a) - place(b))
  }
}

export default defineConfig({
  resolve: {
    // Tests and examples write `legate` as a user does and get the sources: one copy of the package in a process.
    alias: Object.entries(manifest.exports).flatMap(([door, file]) =>
      typeof file === 'string' ? [] : [source(door, file.default)],
    ),
  },
  test: {
    // Many tests wait for other processes and for time to pass.
    maxWorkers: availableParallelism() + 1,
    // What tests make is garbage at once: with room for it, it is collected less often.
    execArgv: ['--max-semi-space-size=32'],
    sequence: { sequencer: LongFirst },
    projects: [
      project('house', { include: house, testTimeout: 30_000 }),
      project('crash', {
        include: crash,
        isolate: false,
        ...again,
        ...slow,
        globalSetup: 'test/crash/support/build-programs.ts',
      }),
      project('postgres', {
        include: postgres,
        isolate: false,
        setupFiles,
        ...slow,
        globalSetup: 'test/crash/support/build-programs.ts',
      }),
      // First, and one after the other: two windows that are busy at once would measure each other.
      project('page', { ...inBrowser, include: page, fileParallelism: false, sequence: { groupOrder: 0 } }),
      project('browser', { ...inBrowser, include: browser, exclude: page, sequence: { groupOrder: 1 } }),
      project('suite', { ...common, exclude: notCommon, ...usual }),
      project('alone', { include: alone, setupFiles, ...again, ...usual }),
      project('fresh', { ...common, exclude: [...notCommon, ...left], ...fresh }),
      project('fresh alone', { include: alone, exclude: left, ...fresh }),
    ],
    coverage: { provider: 'v8', include: ['src/**/*.ts'], exclude: ['src/**/*.test.ts'] },
  },
})

function project(name: string, test: TestProjectInlineConfiguration['test']): TestProjectInlineConfiguration {
  return { extends: true, test: { ...test, name } }
}

function source(door: string, built: string): { find: RegExp; replacement: string } {
  const file = built.replace(/^\.\/dist\/(.*)\.js$/, './src/$1.ts')
  return { find: new RegExp(`^legate${door.slice(1)}$`), replacement: fileURLToPath(new URL(file, import.meta.url)) }
}
