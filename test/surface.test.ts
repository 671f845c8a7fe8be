import { existsSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { ERROR_CODES } from '../src/base/error.ts'
import { DEFAULT_LIMITS, ROOT_WALL_MS } from '../src/grant/budget.ts'
import { COMMIT_KINDS, SHOWN_BYTES } from '../src/graph/commit.ts'
import { DURABLE_EVENTS, LIVE_EVENTS } from '../src/graph/event.ts'
import { CANCEL_GRACE_MS, CONTEXT_TURNS } from '../src/graph/kinds.ts'
import { STATUSES } from '../src/graph/outcome.ts'
import { MODEL_ATTEMPTS, retryDelay } from '../src/model/retry.ts'
import { MAX_RECOVERIES } from '../src/rules/turn/result.ts'
import { ENGINE_DEFAULTS } from '../src/runtime/options.ts'
import { FAILPOINTS } from '../src/testing/index.ts'
import { TOOL_TIMEOUT_MS, tool } from '../src/tool/tool.ts'

/** Every name a user can import at run time. A change here is a change of the public API: say so in CHANGELOG.md. */
const surface: Readonly<Record<string, readonly string[]>> = {
  index: [
    'ConflictError',
    'DURABLE_EVENTS',
    'DefinitionError',
    'DeniedError',
    'ERROR_CODES',
    'FieldError',
    'InputError',
    'LIVE_EVENTS',
    'LegateError',
    'MODES',
    'ModelError',
    'NotFoundError',
    'RecipeError',
    'RunError',
    'STATUSES',
    'StoreError',
    'SubAgentUnavailable',
    'ToolError',
    'agent',
    'asAiSdkTool',
    'askTools',
    'attribute',
    'auto',
    'backgroundSubagents',
    'chatSession',
    'conversationIdFor',
    'costOf',
    'createRuntime',
    'developerTools',
    'diskFiles',
    'extension',
    'fileTools',
    'findModel',
    'fromAiSdk',
    'generalWorker',
    'isAgent',
    'isLegateError',
    'joinSpawned',
    'makeSubagentTool',
    'mcpServer',
    'memoryFiles',
    'memoryStore',
    'memoryTools',
    'missingSecrets',
    'modelInfo',
    'openSubagents',
    'planner',
    'recipeAgent',
    'runProcess',
    'scheduleTasks',
    'toUIMessageStream',
    'toUIMessages',
    'todoTools',
    'tool',
    'toolkit',
  ],
  'testing/index': [
    'CrashCase',
    'FAILPOINTS',
    'aftermath',
    'checkStanding',
    'checkSubagentContract',
    'countEffect',
    'countOutside',
    'crash',
    'crashWorker',
    'failpoints',
    'fakeClock',
    'passPoint',
    'readTrees',
    'record',
    'replay',
    'scriptedModel',
    'startCounter',
    'storeConformance',
    'tellTest',
    'withFailpoints',
    'workerRole',
  ],
  'grant/index': [
    'BUILT_IN_PROFILES',
    'decide',
    'delegateLayer',
    'explain',
    'hostRequest',
    'lint',
    'narrow',
    'profileLayer',
    'programRequest',
    'readRequest',
    'useLayer',
  ],
  'fields/index': ['dotPath', 'fieldParser', 'matchesPath', 'missingFields', 'readPath', 'slashPath', 'wildcardPath'],
  'extension/prompt-files': [
    'EmptyPromptError',
    'Prompt',
    'SLOTS',
    'field',
    'loadJsonPrompt',
    'loadPromptFile',
    'loadPromptText',
    'loadYamlPrompt',
    'prompt',
  ],
  'recipe/index': [
    'BUILTIN_TOOLKITS',
    'DIALECTS',
    'EMPTY_AGENT_FILE',
    'TaskBoard',
    'builtinToolkit',
    'convert',
    'describeRecipe',
    'discover',
    'discoverSkills',
    'extensionSources',
    'findDefinition',
    'loadAgentFile',
    'loadDefinition',
    'loadRecipe',
    'mentionedIn',
    'missingAgents',
    'modelOf',
    'modelUse',
    'noticeText',
    'noticesOf',
    'readDefinition',
    'readRecipeFile',
    'readSkillFile',
    'readTaskEvent',
    'recipeFileName',
    'secretsOf',
    'skillInstructions',
    'skillsTools',
    'sourceName',
    'subRecipeValues',
    'subagentLine',
    'subagentNotice',
    'validateDefinition',
    'writeRecipe',
  ],
  'store/memory/index': ['memoryStore'],
  'store/json/index': ['jsonSession', 'jsonStore'],
  'store/sqlite/index': ['sqliteStore'],
}

describe.each(Object.entries(surface))('%s', (entry, names) => {
  test('the source exports exactly these names', async () => {
    expect(await namesIn(`src/${entry}.ts`)).toEqual(names)
  })

  test('the built package exports the same', async (context) => {
    context.skip(!existsSync(file(`dist/${entry}.js`)), 'dist is not built: npm run build')

    expect(await namesIn(`dist/${entry}.js`)).toEqual(names)
  })
})

describe('words that others depend on', () => {
  test('event types', () => {
    expect(DURABLE_EVENTS.join(' ')).toBe(
      'run-queued run-start run-end message tool-call tool-result delegation-start delegation-end approval-request ' +
        'approval-answer question answer usage node-state retry uncertain late-result budget stalled compaction ' +
        'context-cut definition-changed graph-change extension-error warning',
    )
    expect(LIVE_EVENTS.join(' ')).toBe('text-delta reasoning-delta tool-input-delta field progress extension reset')
  })

  test('error codes', () => {
    expect(ERROR_CODES.join(' ')).toBe(
      'definition subagent_unavailable invalid_input not_found denied conflict store store_busy store_foreign_file ' +
        'store_newer_schema store_readonly store_full store_closed store_gone tampered model tool run field recipe unserialisable aborted internal',
    )
  })

  test('outcomes', () => {
    expect(STATUSES.join(' ')).toBe(
      'completed max_turns over_budget timed_out cancelled failed uncertain invalid_output invalid_input unavailable denied',
    )
  })

  test('commit kinds: the failpoints of the crash harness', () => {
    expect(COMMIT_KINDS.join(' ')).toBe(
      'say claim reserve expand spawn result end retry ask answer cancel expire force recover deliver mutate note stream lease',
    )
    expect([...FAILPOINTS].toSorted()).toEqual(
      COMMIT_KINDS.flatMap((kind) => [`after:${kind}`, `before:${kind}`]).toSorted(),
    )
  })
})

describe('defaults', () => {
  test('of a run', () => {
    expect(DEFAULT_LIMITS).toEqual({
      turns: 25,
      depth: 3,
      concurrency: 20,
      children: 100,
      toolCalls: 1_000,
      wallMs: 3_600_000,
    })
    expect(ROOT_WALL_MS).toBe(24 * 3_600_000)
    expect(CONTEXT_TURNS).toBe(50)
  })

  test('of a tool', () => {
    const plain = tool({ description: 'x', inputSchema: { type: 'object' }, execute: () => null })

    expect([plain.effect, plain.timeoutMs, TOOL_TIMEOUT_MS]).toEqual(['effectful', 300_000, 300_000])
    expect(SHOWN_BYTES).toBe(64 * 1_024)
  })

  test('of a model call: 4 attempts, 1 to 30 seconds apart', () => {
    const passing = { statusCode: 503 }
    const delays = [2, 3, 4, 5].map((next) => retryDelay(passing, next) ?? 0)

    expect(MODEL_ATTEMPTS).toBe(4)
    expect(delays[0]).toBeGreaterThanOrEqual(1_000)
    expect(Math.max(...delays)).toBeLessThanOrEqual(30_000)
    expect(delays[3]).toBe(0)
  })

  test('of an engine', () => {
    expect(ENGINE_DEFAULTS).toEqual({
      workers: 256,
      graceMs: 5_000,
      sweepMs: 1_000,
      leaseMs: 15_000,
      firstWordMs: 1_800_000,
      stalledMs: 300_000,
    })
    expect([CANCEL_GRACE_MS, MAX_RECOVERIES]).toEqual([5_000, 5])
  })
})

async function namesIn(relative: string): Promise<string[]> {
  const module: object = await import(pathToFileURL(file(relative)).href)
  return Object.keys(module).sort()
}

function file(relative: string): string {
  return path.resolve(import.meta.dirname, '..', relative)
}
