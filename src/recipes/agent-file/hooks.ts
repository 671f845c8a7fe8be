// The hooks of an agent file, in the words of Claude Code: programs that guard its calls and its end.
//
// Called by: the dialects that have them; `recipe/hooks` runs what is read here.
// Must stay true:
//   - A hook is a guard. One that is not understood is a demand that is not met: the file is not started.
//   - A hook runs at least as often as its file says: a matcher that is a plain name matches whole names, as there.

import type { Json } from '../../core/base/json.ts'
import { isAbsent, type TextMap, type TextTree, valueAt } from '../../core/base/text-tree/tree.ts'
import { programRequest } from '../../core/grant/request.ts'
import type { AgentFileDraft } from './draft.ts'
import { type FileHook, HOOK_EVENTS, type HookEvent, PLAIN_MATCHER, wordsOfHook } from './file-hook.ts'

const SECONDS = 60
const MOST_SECONDS = 600
const MOST_HOOKS = 100

/** Events at which a hook can only watch or add words: nothing is guarded by it. */
const WATCHING: ReadonlySet<string> = new Set([
  ...['Notification', 'SessionStart', 'SessionEnd', 'SubagentStart', 'Setup', 'InstructionsLoaded', 'CwdChanged'],
  ...['PreCompact', 'PostCompact', 'PostToolUseFailure', 'StopFailure', 'FileChanged', 'WorktreeRemove'],
])

/** Reads the key `hooks`: an event, its matchers, and for each the programs to run. */
export function readHooks(draft: AgentFileDraft): void {
  const tree = draft.tree('hooks')
  if (isAbsent(tree)) return
  if (tree.kind !== 'map') return refuse(draft, 'hooks', 'hooks in a form that is not known')
  const hooks = [...tree.entries].flatMap(([event, { value }]) => hooksOf(draft, event, value))
  if (hooks.length > MOST_HOOKS)
    return refuse(draft, 'hooks', `${hooks.length} hooks, and a file has at most ${MOST_HOOKS}`)
  draft.agent.hooks = hooks
}

function hooksOf(draft: AgentFileDraft, event: string, tree: TextTree): FileHook[] {
  if (WATCHING.has(event)) {
    const message = `\`hooks.${event}\` is ignored: it guards nothing, and there is no such moment here`
    draft.report.warning({ code: 'ignored', message, line: tree.line })
    return []
  }
  if (!isEvent(event)) return refuseHook(draft, event, 'a hook at a moment that is not known')
  if (isAbsent(tree)) return []
  const groups = tree.kind === 'list' ? tree.items : [tree]
  return groups.flatMap((group) => {
    if (group.kind !== 'map') return refuseHook(draft, event, FORM)
    const unknown = unknownKey(group, ['matcher', 'hooks', 'description'])
    const matcher = valueAt(group, 'matcher')
    const list = valueAt(group, 'hooks')
    if (unknown !== undefined) return refuseHook(draft, event, `\`${unknown}\` beside a matcher`)
    if (list?.kind !== 'list' || (matcher !== undefined && matcher.kind !== 'leaf'))
      return refuseHook(draft, event, FORM)
    const names = isAbsent(matcher) ? '' : matcher.text.trim()
    return list.items.flatMap((item) => hookOf(draft, item, { event, matcher: names === '*' ? '' : names }))
  })
}

const FORM = 'a hook in a form that is not known'
const KEYS = ['type', 'command', 'args', 'timeout', 'statusMessage', 'once', 'async', 'shell', 'description']

function hookOf(draft: AgentFileDraft, tree: TextTree, place: Pick<FileHook, 'event' | 'matcher'>): FileHook[] {
  const { event } = place
  if (tree.kind !== 'map') return refuseHook(draft, event, FORM)
  const type = textOf(tree, 'type')
  if (type !== 'command')
    return refuseHook(draft, event, `a hook of the type ${type ?? 'of none'}, and only programs are run`)
  const unknown = unknownKey(tree, KEYS)
  if (unknown !== undefined) return refuseHook(draft, event, `a hook with \`${unknown}\``)
  const shell = textOf(tree, 'shell') ?? 'bash'
  if (shell !== 'bash') return refuseHook(draft, event, `a hook for the shell ${shell}`)
  const command = textOf(tree, 'command')?.trim() ?? ''
  const args = argumentsOf(tree)
  if (args === undefined || !isProgram({ command, args }))
    return refuseHook(draft, event, 'a hook without a program that can be started')
  const trouble = matcherTrouble(place.matcher)
  if (trouble !== undefined) return refuseHook(draft, event, trouble)
  if (valueAt(tree, 'async') !== undefined) {
    const message = `\`async\` of a hook is ignored: each hook of ${event} is waited for`
    draft.report.warning({ code: 'ignored', message, line: tree.line })
  }
  const seconds = secondsOf(draft, tree)
  return seconds === undefined
    ? refuseHook(draft, event, 'a hook whose `timeout` is not a number of seconds')
    : [{ ...place, command, args, seconds }]
}

function isProgram(hook: Pick<FileHook, 'command' | 'args'>): boolean {
  try {
    return hook.command !== '' && programRequest(wordsOfHook(hook)).argv.length > 0
  } catch {
    return false
  }
}

/** Undefined where they are no list of texts. */
function argumentsOf(tree: TextMap): readonly string[] | null | undefined {
  const list = valueAt(tree, 'args')
  if (isAbsent(list)) return null
  if (list.kind !== 'list' || list.items.some(({ kind }) => kind !== 'leaf')) return undefined
  return list.items.map((item) => (item.kind === 'leaf' ? item.text : ''))
}

function secondsOf(draft: AgentFileDraft, tree: TextMap): number | undefined {
  const said = valueAt(tree, 'timeout')
  if (isAbsent(said)) return SECONDS
  const value = said.kind === 'leaf' ? Number(said.value) : Number.NaN
  if (!(value > 0)) return undefined
  if (value <= MOST_SECONDS) return value
  const message = `a hook takes at most ${MOST_SECONDS} s, not ${value}`
  draft.report.warning({ code: 'invalid_value', message, line: said.line })
  return MOST_SECONDS
}

function textOf(tree: TextMap, key: string): string | null {
  const value = valueAt(tree, key)
  return value?.kind === 'leaf' && value.value !== null ? value.text : null
}

function unknownKey({ entries }: TextMap, known: readonly string[]): string | undefined {
  return [...entries.keys()].find((key) => !known.includes(key))
}

function isEvent(event: string): event is HookEvent {
  return (HOOK_EVENTS as readonly string[]).includes(event)
}

/** Says why a matcher cannot be used: it is matched in linear time, which knows no lookaround and no backreference. */
function matcherTrouble(matcher: string): string | undefined {
  if (PLAIN_MATCHER.test(matcher)) return undefined
  if (matcher.length > LONGEST_MATCHER) return `a matcher of more than ${LONGEST_MATCHER} characters`
  return /\(\?(?!:)|\\[1-9]|\\k</.test(matcher)
    ? `the matcher ${matcher}, whose lookaround or backreference is not read`
    : undefined
}

const LONGEST_MATCHER = 1_000

function refuseHook(draft: AgentFileDraft, event: string, what: string): [] {
  refuse(draft, `hooks.${event}`, what)
  return []
}

/** Nothing may be left of a guard that is not understood: the file is not started. */
function refuse(draft: AgentFileDraft, field: string, what: string): void {
  draft.demand(field, 'hooks', what)
}

/** The hooks in the words of their file. */
export function writtenHooks(hooks: readonly FileHook[]): Json | undefined {
  if (hooks.length === 0) return undefined
  const events = HOOK_EVENTS.filter((event) => hooks.some((hook) => hook.event === event))
  return Object.fromEntries(
    events.map((event) => [event, hooks.filter((hook) => hook.event === event).map((hook): Json => writtenHook(hook))]),
  )
}

function writtenHook({ matcher, command, args, seconds }: FileHook): Json {
  const program = {
    type: 'command',
    command,
    ...(args === null ? {} : { args: [...args] }),
    ...(seconds === SECONDS ? {} : { timeout: seconds }),
  }
  return { ...(matcher === '' ? {} : { matcher }), hooks: [program] }
}
