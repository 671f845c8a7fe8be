import type { CallGuards } from '../../core/agent/definition/call-guards.ts'
import type { NodeRun } from '../../core/agent/hooks/node-run.ts'
import { sha256 } from '../../core/base/hash.ts'
import type { Json } from '../../core/base/json.ts'
import type { ProgramRequest } from '../../core/grant/request.ts'
import { type Content, type ToolCall, textOf } from '../../core/graph/content.ts'
import type { PendingPermission } from '../../core/tool/invoke.ts'
import { askFor } from '../../core/tool/permit.ts'
import { errorEnd, type ToolEnd } from '../../core/tool/result.ts'
import type { FileHook } from '../agent-file/file-hook.ts'
import { type CallOfTool, type ClaudeCall, changedInput, claudeCalls } from './claude-calls.ts'
import { isMatched } from './match-tools.ts'
import { type HookFolder, type HookVerdict, inFolder, permitHook, runHook, shownHook } from './run-hook.ts'

/** The guards that the hooks of a file are. */
export function guardsOf(hooks: readonly FileHook[], place: HookFolder): CallGuards {
  return {
    before: (run: NodeRun, call: ToolCall) => before(run, call, { hooks, place }),
    after: (run: NodeRun, end: ToolEnd) => after(run, end, { hooks, place }),
  }
}

interface Guarding {
  readonly hooks: readonly FileHook[]
  readonly place: HookFolder
}

async function before(
  run: NodeRun,
  call: ToolCall,
  { hooks, place }: Guarding,
): Promise<ToolCall | ToolEnd | PendingPermission> {
  const first = await matching(run, call, { hooks, place })
  // Each program is decided before the first one runs, those that look at the result too: nobody can be asked after the call.
  for (const { hook } of first) {
    const permitted = permitHook(run, hook, place)
    if ('refused' in permitted) return errorEnd(`Refused: ${permitted.refused}.`)
    if ('ask' in permitted) return permitted
  }
  let guarded = call
  for (const hook of hooks.filter(({ event }) => event === 'PreToolUse')) {
    for (const { shown, folder } of await matching(run, guarded, { hooks: [hook], place })) {
      const decided = await shownTo(run, guarded, { hook, place, shown, folder })
      if ('state' in decided || 'ask' in decided) return decided
      guarded = decided
    }
  }
  return guarded
}

interface Matched {
  readonly hook: FileHook
  readonly shown: ClaudeCall
  readonly folder: string
}

/** The hooks before and after a call that look at it, with what each sees. */
async function matching(run: NodeRun, call: ToolCall, { hooks, place }: Guarding): Promise<readonly Matched[]> {
  const wanted = hooks.filter(({ event }) => event === 'PreToolUse' || event === 'PostToolUse')
  if (wanted.length === 0) return []
  const folder = await inFolder(run, place, async (real) => real)
  const calls = claudeCalls(toolCall(run, call), { folder })
  return wanted.flatMap((hook) => {
    return calls.filter((shown) => isMatched(hook, shown)).map((shown) => ({ hook, shown, folder }))
  })
}

function toolCall({ toolkit }: NodeRun, { name, input }: ToolCall): CallOfTool {
  return { name, input: (input ?? null) as Json, delegates: toolkit.find(name)?.tool === null }
}

interface Looking extends Matched {
  readonly place: HookFolder
}

async function shownTo(
  run: NodeRun,
  call: ToolCall,
  looking: Looking,
): Promise<ToolCall | ToolEnd | PendingPermission> {
  const { hook, shown, folder } = looking
  const verdict = await ask(run, call, looking)
  if (verdict.says === 'no') return errorEnd(`Refused: ${verdict.reason}`)
  if (verdict.says === 'ask') return askPerson(run, call, { hook, reason: verdict.reason }) ?? call
  if (verdict.allows) await noteAllowed(run, hook)
  if (verdict.changed === undefined) return call
  const given = toolCall(run, call)
  const isOnly = claudeCalls(given, { folder }).length === 1
  const input = isOnly ? changedInput(given, verdict.changed, { folder }) : undefined
  if (input !== undefined) return { ...call, input }
  return errorEnd(
    `Refused: the hook ${shownHook(hook)} changes the call of ${shown.name} in a way that is not understood here.`,
  )
}

function askPerson(
  run: NodeRun,
  { name, input }: ToolCall,
  { hook, reason }: { readonly hook: FileHook; readonly reason: string },
): ToolEnd | PendingPermission | undefined {
  const about = {
    request: `tool:${name}`,
    input: (input ?? null) as Json,
    required: false,
    // A yes to another question is no yes to this one.
    version: sha256(`hook ${hook.command}`),
  }
  const answer = askFor(run, about, `the hook ${shownHook(hook)} asks: ${reason}`)
  if (answer?.verdict === 'deny') return errorEnd(`Refused: ${answer.reason}`)
  return answer
}

const told: Set<string> = new Set()
const MOST_TOLD = 1_000

/** Says once in each run that the yes of a hook does not count. */
async function noteAllowed({ home, node }: NodeRun, hook: FileHook): Promise<void> {
  const key = `${node.turnId} ${hook.command}`
  if (told.has(key)) return
  if (told.size >= MOST_TOLD) told.clear()
  told.add(key)
  const message = `The hook ${shownHook(hook)} allows a call. That is ignored: a hook may only refuse.`
  home.settings.logger.warn(message, { runId: node.turnId })
  await home.ledger.commit({
    kind: 'note',
    rootId: node.rootId,
    plan: (draft) => {
      const turn = draft.findTurn(node.turnId)
      if (turn !== undefined && turn.state !== 'ended') draft.event(turn, node.id, { type: 'warning', message })
    },
  })
}

/** Shows a hook what happens and gives its verdict. */
function ask(
  run: NodeRun,
  call: ToolCall,
  { hook, place, shown, folder }: Looking,
  response?: Json,
): Promise<HookVerdict> {
  const permitted = permitHook(run, hook, place)
  if ('refused' in permitted) return Promise.resolve({ says: 'no', reason: permitted.refused, isBroken: true })
  if ('ask' in permitted) return Promise.resolve({ says: 'no', reason: NOT_ASKED, isBroken: true })
  const fields = {
    ...commonFields(run, hook, folder),
    tool_name: nameFor(hook, shown),
    tool_input: shown.input,
    tool_use_id: call.id,
    ...(response === undefined ? {} : { tool_response: response }),
  }
  return runHook(run, hook, { request: permitted as ProgramRequest, place, shown: fields })
}

const NOT_ASKED = 'a person would have to allow its hook first'

/** The name that the matcher knows. */
function nameFor({ matcher }: FileHook, { name, aliases, input }: ClaudeCall): string {
  if (isMatched({ matcher }, { name, aliases: [], input })) return name
  return aliases.find((alias) => isMatched({ matcher }, { name: alias, aliases: [], input })) ?? name
}

/** The input of every hook. The session is that of the agent at the top; an agent below it is named. */
export function commonFields(
  run: NodeRun,
  { event }: Pick<FileHook, 'event'>,
  cwd: string,
): { readonly [key: string]: Json } {
  const { node, conversation, layers } = run
  return {
    session_id: node.rootId,
    cwd,
    permission_mode: layers.some(({ neverAsks }) => neverAsks === true) ? 'dontAsk' : 'default',
    hook_event_name: event,
    ...(conversation.depth === 0 ? {} : { agent_id: conversation.id, agent_type: conversation.path.at(-1) ?? '' }),
  }
}

async function after(run: NodeRun, end: ToolEnd, { hooks, place }: Guarding): Promise<ToolEnd> {
  const { call } = run.node.input
  if (call === undefined || end.state !== 'finished' || end.output?.isError === true) return end
  const looking = hooks.filter(({ event }) => event === 'PostToolUse')
  const words: string[] = []
  let isRefused = false
  for (const one of await matching(run, call, { hooks: looking, place })) {
    const verdict = await ask(run, call, { ...one, place }, responseOf(one.shown, end))
    if (verdict.says === 'nothing') {
      if (verdict.words !== '') words.push(verdict.words)
      continue
    }
    if (verdict.says === 'no' && verdict.isBroken)
      return errorEnd(`The result of ${call.name} is withheld: ${verdict.reason}. The call itself has been made.`)
    isRefused = true
    words.push(`The call has been made, and the hook ${shownHook(one.hook)} objects to it: ${verdict.reason}`)
  }
  return words.length === 0 ? end : withWords(end, words, isRefused)
}

function responseOf({ name, input }: ClaudeCall, { output, whole }: ToolEnd): Json {
  const { content = '', value } = whole ?? output ?? {}
  const text = textOf(content)
  if (name === 'Bash') return { stdout: text, stderr: '', interrupted: false }
  const { file_path: filePath = null } = input as { readonly file_path?: Json }
  if (name === 'Write' || name === 'Edit') return { filePath, success: true }
  return value ?? text
}

function withWords(end: ToolEnd, words: readonly string[], isError: boolean): ToolEnd {
  const { content = '' } = end.output ?? {}
  const text = words.join('\n\n')
  const joined: Content =
    typeof content === 'string' ? `${content}\n\n${text}`.trim() : [...content, { type: 'text', text }]
  return { ...end, output: { ...end.output, content: joined, ...(isError ? { isError } : {}) } }
}
