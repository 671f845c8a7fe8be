import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { ERROR_CODES } from '../src/core/base/error.ts'
import { ROOT_WALL_MS } from '../src/core/grant/budget.ts'
import { COMMIT_KINDS, SHOWN_BYTES } from '../src/core/graph/commit.ts'
import { DURABLE_EVENTS, LIVE_EVENTS } from '../src/core/graph/event.ts'
import { CANCEL_GRACE_MS, CONTEXT_TURNS } from '../src/core/graph/kinds.ts'
import { DEFAULT_LIMITS } from '../src/core/graph/limits.ts'
import { STATUSES } from '../src/core/graph/outcome.ts'
import { MODEL_ATTEMPTS, retryDelay } from '../src/core/model/retry.ts'
import { MAX_RECOVERIES } from '../src/core/rules/turn/result.ts'
import { ENGINE_DEFAULTS } from '../src/core/runtime/options.ts'
import { TOOL_TIMEOUT_MS, tool } from '../src/core/tool/tool.ts'
import { FAILPOINTS } from '../src/testing/index.ts'
import tsconfig from '../tsconfig.json' with { type: 'json' }
import { figure } from './crash/support/figure.ts'

interface Door {
  readonly values: string
  readonly types: string
}

/** The names that a user can import. A change here is a change of the public API: say so in CHANGELOG.md. */
const surface: Readonly<Record<string, Door>> = {
  legate: {
    values:
      'ConflictError DefinitionError DeniedError InputError LegateError ModelError NotFoundError RunError ' +
      'StoreError SubAgentUnavailable ToolError agent auto createRuntime isAgent ' +
      'isLegateError tool',
    types:
      'Agent AgentDefinition AgentInput AgentOutput QuestionAnswer AnyAgent ApprovalDecision AutoDefinition ' +
      'AutoFunction Budget Content ConversationHandle Effect ErrorCode Grant Id InboxItem Json JsonSchema Outcome ' +
      'PendingApproval PendingQuestion Principal Run RunEvent RunOptions RunOutcome Runtime RuntimeOptions Schema ' +
      'ScopedRuntime SettleDecision StandardSchema StartOptions Status Store SubagentConfig Subagents Tool ToolContext ToolDefinition ' +
      'Tools Usage',
  },
  'legate/testing': {
    values:
      'CrashCase FAILPOINTS aftermath checkStanding checkSubagentContract countEffect countOutside crash ' +
      'crashWorker engineConformance failpoints fakeClock forgetBetweenNodes passPoint readTrees record replay scriptedModel startCounter ' +
      'storeConformance tellTest withFailpoints workerRole',
    types:
      'Aftermath Clock ContractOptions CountedEffect CrashOptions CrashProgram CrashWorker EngineConformance Evidence ' +
      'Failpoint FailpointPlan Failpoints FakeClock Kill KillMoment KillPoint LocalStore OutsideCounter RecordOptions ' +
      'Replay Script ScriptedAnswer ScriptedModel ScriptedAnswerFields ScriptedInput TreeRows WorkerExit WorkerGiven WorkerLine WorkerProcess',
  },
  'legate/tools': {
    values:
      'attribute developerTools diskFiles fileTools memoryFiles memoryTools missingSecrets runProcess ' +
      'todoTools toolkit',
    types:
      'Attribute Delegate DeveloperToolName DiskFilesOptions Edit FileChange FileDomain FileInfo FilePolicy ' +
      'Files GroupedTools Listing MemoryFilesOptions MemoryToolsOptions MissingSecret OpenSource ' +
      'ProcessOptions ProcessResult RuntimeFile SourcePlace SourceScope SourceTool Sources ToolGroup ToolSource ' +
      'ToolkitOptions',
  },
  'legate/mcp': {
    values: 'mcpServer',
    types: 'HttpServerOptions McpServerOptions McpServers StdioServerOptions',
  },
  'legate/background': {
    values: 'askTools backgroundSubagents generalWorker joinSpawned scheduleTasks',
    types:
      'Attempts BackgroundOptions BackgroundSettings Briefing BriefingFunction BriefingMode ChildPoll DelegationContext Eager ' +
      'EagerConfig EagerOutcome EagerValue EventType GeneralTask GeneralWorkerOptions HostContext ' +
      'JoinOptions JoinResult NameClash OpenSession RecentEvent ReplyAnswer ' +
      'ReplyContext ReplyDefinition ReplyDelegate ReplyInput Schedule ScheduleEvent ScheduleOptions ' +
      'ScheduleProgress ScheduleResult ScheduledTask SessionDocument SessionSettings SessionStore ' +
      'SpawnAgentOptions SpawnedAgent StreamOptions SubagentValue ' +
      'TaskResult TaskRunner TaskStatus',
  },
  'legate/models': {
    values: 'costOf findModel modelInfo',
    types: 'FinishReason Message Model ModelInfo ModelLike ModelRequest ModelSettings Part ToolChoice ToolSchema',
  },
  'legate/hooks': {
    values: 'chatSession extension planner',
    types:
      'AfterTool BeforeTool ChatMessage ChatMethods ChatOptions ChatPlace ChatSession ChatStart ChildCall ' +
      'CompactionOptions Emission EventHooks Extension ExtensionCore HookContext HookResult HookedCall ' +
      'Hooks Inside Logger ModelAnswer NextModel PlanContext PlanFunction PlannerOptions Repair RequestChange ' +
      'RunOfState Span SpanAttributes SpanContent SpanEvent SpanPlace SpanStart SpanValue StreamedAnswer ' +
      'Telemetry ToolCommand ToolResult Vocabulary',
  },
  'legate/rows': {
    values:
      'DURABLE_EVENTS ERROR_CODES LIVE_EVENTS STATUSES askedText callText look lookWith openTopRuns seenOf wantedText',
    types:
      'AgentInfo ApprovalsQuery AskedFacts AuditOptions AuditReport Block ChangePage Commit CompletedOutcome ' +
      'CompressOptions Conversation ConversationHistory ConversationInfo ConversationTree CopyOptions CopyReport DayUsage ' +
      'DaysQuery DirectInput DirectMessage DurableEvent Engine EngineFactory EngineOptions ' +
      'EventsOptions Finding FindingType ForgottenOwner Fork ForkOptions FoundIds GraphData GraphEdge ' +
      'GraphNode GraphQuery GraphTurn ImportOptions InboxQuery KindContext KindDefinition LaneInfo Ledger Link ' +
      'ListQuery LiveCall LiveEvent LiveState MutateOptions Mutation Node NodeDiff NodeInfo NodeSpec ' +
      'NodeState OtlpOptions OtlpSpan OtlpTraces PictureOptions PricedDay PruneOptions QuestionsQuery Registry RegistryQuery CallResult ' +
      'RegistryRow RemakeOptions RestoredOptions RestoredReport RootState RunCeiling RunDiff RunFigures RunInfo RunTree RunsQuery ' +
      'SettledCall ShownRequest StoreReader TimelineAttempt TimelineRun TimelineSpan TimelineWait Told ' +
      'ToldLane ToldNode ToldPast Tombstone ToolCall TreeChange TreeData TreeEvents TreeEventsOptions ' +
      'TreeReader TreesQuery Turn UsageQuery UsageShare UsageStats UsageSum WaitingOn WholeResult Why ' +
      'WhyCode WhyReason',
  },
  'legate/ai-sdk': {
    values: 'UI_MESSAGE_ID asAiSdkTool fromAiSdk toUIMessageStream toUIMessages',
    types:
      'AiSdkModel AiSdkTool UiApproval UiDataParts UiMessage UiMessageChunk UiMessageChunk7 UiMetadata UiPageQuery UiQuestion ' +
      'UiStreamOptions UiSubagent UiSubagentCall',
  },
  'legate/compat': {
    values:
      'getKeyResult leaveFree loadJsonPrompt loadYamlPrompt makeSubagentTool registerTool startWaiter toolFunc useMcp useTool useTools waitKeys whenKey',
    types:
      'KeyOptions MakeSubagentOptions ShapedTool SubagentHost SubagentSpec SubagentTool ToolFunctionOptions UseMcpOptions',
  },
  'legate/grant': {
    values:
      'BUILT_IN_PROFILES SCOPES atThisMachine checkPrincipal countedIds decide delegateLayer explain hasScope hostRequest isAsWide isOfThisMachine isOperator lint ' +
      'looksAfter maySee mayStart narrow narrowPrincipal profileLayer programRequest readRequest seesEverything useLayer',
    types:
      'ApprovalRight DayBudget Decision Explanation HostRequest KnownRequests Layer LayerAnswer LintFinding MadeToken Profiles RevokedTokens ' +
      'ProgramRequest Request Scope TokenInfo Verdict',
  },
  'legate/a2a': { values: 'a2aAgent', types: 'A2aAgentOptions' },
  'legate/acp': { values: 'SESSION_FOLDER serveAcp', types: 'AcpOptions' },
  'legate/mcp-server': {
    values: 'McpRefusal recipePrompt serveMcp signingKey toolAgent',
    types:
      'McpAgentOptions McpArguments McpCall McpOptions McpPrompt McpPromptArgument McpReader McpResource McpTool ServeMcpOptions ' +
      'ToolAgentOptions',
  },
  'legate/server': {
    values: 'LOCAL_PRINCIPAL Tokens handler localTokenFile serve',
    types:
      'AnsweredRequest Handler HandlerOptions HttpCode NewToken OidcOptions ProblemCode ProblemDetails RetentionOptions ServeOptions Server ServerLimits TlsFiles WebhookOptions',
  },
  'legate/fields': {
    values: 'FieldError dotPath fieldParser matchesPath missingFields readPath slashPath wildcardPath',
    types:
      'AgentRawOutput FieldEvent FieldFailure FieldHandler FieldKind FieldOptions FieldParser ' +
      'FieldParserOptions FieldPath FieldResult FieldValue FieldsOptions InferInput InferOutput ' +
      'ParserLimits ParserResult ParserState PathPattern PathSegment RunField',
  },
  'legate/prompt': {
    values: 'EmptyPromptError Prompt SLOTS field loadPromptFile loadPromptText prompt',
    types:
      'AgentRequest Described Layers Mappings MediaBlock MessagePart MessagesOptions OutputOf OutputShape ' +
      'PromptAlias PromptAliasFunction PromptAliases PromptLoadOptions PromptMessage PromptRequest ' +
      'PromptWarning RenderOptions RequestMessage RequestOptions RequestRenderOptions RequestRuntime ' +
      'RequestSettings RequestStartOptions Roles Shape Slot SlotKey SlotOptions TextLoadOptions TextOptions ' +
      'TitleKey',
  },
  'legate/recipe': {
    values:
      'BUILTIN_TOOLKITS DIALECTS EMPTY_AGENT_FILE MODES RecipeError TaskBoard builtinToolkit convert ' +
      'describeRecipe discover discoverSkills extensionSources findDefinition loadAgentFile loadDefinition ' +
      'loadRecipe mentionedIn missingAgents modelOf modelUse noticeText noticesOf openSubagents ' +
      'projectFiles readDefinition readRecipeFile readSkillFile readTaskEvent recipeAgent recipeFileName secretsOf shownExtension ' +
      'skillInstructions skillsTools sourceName subRecipeValues subagentLine subagentNotice ' +
      'validateDefinition writeRecipe',
    types:
      'AgentFile AgentFileOptions AgentMemory AskParameter BuiltinOptions BuiltinToolkit ChildSettings ConvertOptions ' +
      'ConvertedFile Definition DiscoveredSkills DiscoveryOptions DiscoveryResult ExtensionConfig ' +
      'ExtensionOptions ExtensionSources FileHook HookEvent LoadedRecipe Mode ModelUse NeededSecret Notice NoticeCode ' +
      'OpenOptions ProjectFile ProjectFiles ProjectFilesOptions Recipe RecipeAgentOptions RecipeDescription RecipeOptions RecipeParameter RecipeSettings ' +
      'RetryConfig Skill SubRecipe SubRecipeOption SubagentNotice Surface TaskEvent TaskInfo ToolSelection ' +
      'ValidationResult',
  },
  'legate/client': {
    values:
      'ClientError approvalsOf connect emptyTree nodeOf nodesOf questionsOf reduceTree runOf treeOf usagesOf ' +
      'visible visibleLines visibleProse',
    types:
      'Answers CallOptions ChangeAnswer ClientStreamOptions ConnectOptions ConversationAnswer ConversationClient ' +
      'EventsPageQuery EventsQuery FeedItem FeedOptions FeedPlace FromQuery KeptOwner LegateClient LimitQuery MadeWebhook ' +
      'ModelUsage NodeAnswer Page ProblemAnswer QueryValues Reconnect RequestParts RunIds RunRequest ' +
      'ServerInfo StartedRun StoppedChat TokenRequest TreeApproval TreeAsked TreeNode TreeQuestion TreeState TreeDecision ' +
      'UsageDays WebhookDelivery ' +
      'WebhookInfo WebhookRequest WebhookType ' +
      'WrittenCall',
  },
  'legate/otel': {
    values: 'legateIds otel',
    types: 'IdGenerator OtelOptions',
  },
  'legate/store/memory': {
    values: 'memoryStore',
    types: 'MemoryStoreOptions',
  },
  'legate/store/json': {
    values: 'jsonSession jsonStore',
    types: 'JsonSession JsonStoreOptions',
  },
  'legate/store/sqlite': {
    values: 'sqliteStore',
    types: 'SqliteStoreOptions',
  },
  'legate/store/postgres': {
    values: 'isPostgresUrl postgresStore',
    types:
      'Dispatch DispatchPlace PostgresClient PostgresPool PostgresStoreOptions SessionQuery SqlQueue WakeQueue WakeTaker',
  },
  'legate/engine/dbos': {
    values: 'dbos',
    types: 'DbosOptions',
  },
}

/** A user of the first month finds all he needs at the root; a name more there is one that hides the others. */
const ROOT_NAMES = 60

/** Different types that have the same name at two doors. */
const HOMONYMS: readonly string[] = ['Part']

const files = new Map(
  Object.entries(manifest.exports).flatMap(([door, to]) =>
    typeof to === 'string' ? [] : [[`legate${door.slice(1)}`, to.default.slice('./dist/'.length, -'.js'.length)]],
  ),
)

describe('doors', () => {
  test('package.json, tsconfig.json and this table have the same', () => {
    const paths = [...files].map(([door, name]) => [door, [`./src/${name}.ts`]])

    expect([...files.keys()].toSorted()).toEqual(Object.keys(surface).toSorted())
    expect(tsconfig.compilerOptions.paths).toEqual(Object.fromEntries(paths))
  })

  test(`the root has at most ${ROOT_NAMES} names`, () => {
    const { values = '', types = '' } = surface['legate'] ?? {}
    figure('names at the root', `${listed(values, types).length}`)

    expect(listed(values, types).length).toBeLessThanOrEqual(ROOT_NAMES)
  })

  test('a name is at one door only', () => {
    const all = Object.values(surface).flatMap(({ values, types }) => listed(values, types))
    const twice = all.filter((name, at) => all.indexOf(name) !== at)

    expect(twice.filter((name) => !HOMONYMS.includes(name))).toEqual([])
  })
})

describe.each(Object.entries(surface))('%s', (door, { values, types }) => {
  const name = files.get(door) ?? ''

  test('the source exports exactly these values', async () => {
    expect(await valuesIn(`src/${name}.ts`)).toEqual(listed(values))
  })

  test('the source exports exactly these types', () => {
    expect(typesIn(`src/${name}.ts`)).toEqual(listed(types))
  })

  test('the built package exports the same values', async (context) => {
    context.skip(!existsSync(file(`dist/${name}.js`)), 'dist is not built: npm run build')

    expect(await valuesIn(`dist/${name}.js`)).toEqual(listed(values))
  })
})

describe('words that others depend on', () => {
  test('event types', () => {
    expect(DURABLE_EVENTS.join(' ')).toBe(
      'run-queued run-start run-end message tool-call tool-result delegation-start delegation-end approval-request ' +
        'approval-answer question answer usage node-state retry uncertain call-settled late-result budget stalled ' +
        'compaction context-cut definition-changed graph-change extension-error warning run-change',
    )
    expect(LIVE_EVENTS.join(' ')).toBe(
      'text-delta reasoning-delta tool-input-delta field progress extension reset live',
    )
  })

  test('error codes', () => {
    expect(ERROR_CODES.join(' ')).toBe(
      'definition subagent_unavailable invalid_input not_found deleted denied over_quota files_undecided programs_untrusted conflict store store_busy store_foreign_file ' +
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
      modelCalls: 25,
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
    const plain = tool({ description: 'x', input: { type: 'object' }, execute: () => null })

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
      onChanged: 'continue',
    })
    expect([CANCEL_GRACE_MS, MAX_RECOVERIES]).toEqual([5_000, 5])
  })
})

function listed(...lists: readonly string[]): string[] {
  return lists.flatMap((list) => list.split(' ').filter((name) => name !== '')).toSorted()
}

async function valuesIn(relative: string): Promise<string[]> {
  const module: object = await import(pathToFileURL(file(relative)).href)
  return Object.keys(module).toSorted()
}

/** `export *` is forbidden, so that the file itself names all it exports. */
function typesIn(relative: string): string[] {
  const tree = ts.createSourceFile(relative, readFileSync(file(relative), 'utf8'), ts.ScriptTarget.ES2023, true)
  return tree.statements.flatMap(typesOf).toSorted()
}

function typesOf(statement: ts.Statement): string[] {
  if (ts.isExportDeclaration(statement)) {
    const { exportClause: clause, isTypeOnly } = statement
    const elements = clause !== undefined && ts.isNamedExports(clause) ? clause.elements : []
    return elements.filter((one) => isTypeOnly || one.isTypeOnly).map(({ name }) => name.text)
  }
  if (!ts.isInterfaceDeclaration(statement) && !ts.isTypeAliasDeclaration(statement)) return []
  const isExported = statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false
  return isExported ? [statement.name.text] : []
}

function file(relative: string): string {
  return path.resolve(import.meta.dirname, '..', relative)
}
