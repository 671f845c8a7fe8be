import type { Dialect } from './agent-file.ts'
import type { Draft } from './draft.ts'
import { readServers } from './mcp-servers.ts'
import { readPermission } from './opencode-permission.ts'
import { readToolWords } from './tool-lists.ts'

/** Fills a draft with what the keys of one dialect say. The body of the file is the instructions already. */
export type ReadDialect = (draft: Draft) => void

/** Every dialect whose files are Markdown with front matter, or TOML. */
export const READERS: Readonly<Record<Exclude<Dialect, 'recipe'>, ReadDialect>> = {
  legate(draft) {
    readCommon(draft)
    draft.allowTools('tools')
    draft.denyTools('disallowedTools')
    readSettings(draft)
    readExtensions(draft, 'mcpServers', 'extensions')
    draft.agent.skills = texts(draft, 'skills')
    draft.limit('turns', draft.number('maxTurns', 'max_turns'), 'maxTurns')
  },
  claude(draft) {
    readCommon(draft)
    draft.allowTools('tools')
    draft.denyTools('disallowedTools')
    draft.effort('effort')
    draft.limit('turns', draft.number('maxTurns'), 'maxTurns')
    readExtensions(draft, 'mcpServers')
    draft.agent.skills = texts(draft, 'skills')
    draft.agent.isBackground = draft.flag('background')
    draft.agent.prompt = draft.text('initialPrompt')
    readPermissionMode(draft)
    draft.keep('color')
    draft.ignore(['hooks', 'memory', 'isolation'], 'there is nothing of the kind here')
  },
  opencode(draft) {
    readCommon(draft)
    readToolMap(draft)
    readSettings(draft)
    const permission = draft.tree('permission')
    if (permission !== undefined) readPermission(permission, draft)
    draft.limit('turns', draft.number('steps', 'maxSteps'), 'steps')
    const mode = draft.text('mode')
    draft.agent.isHidden = draft.flag('hidden') || draft.flag('disable')
    if (mode === 'primary')
      draft.report.note({ code: 'ignored', message: '`mode: primary`: it may be a subagent here too' })
    draft.keep('color', 'variant')
    draft.agent.instructions ||= draft.text('prompt') ?? ''
  },
  gemini(draft) {
    readCommon(draft)
    draft.allowTools('tools')
    readSettings(draft)
    draft.limit('turns', draft.number('max_turns'), 'max_turns')
    const minutes = draft.number('timeout_mins')
    draft.limit('wallMs', minutes === null ? null : Math.round(minutes * 60_000), 'timeout_mins')
    readExtensions(draft, 'mcp_servers', 'mcpServers')
    draft.agent.title = draft.text('display_name')
    if (draft.text('kind') === 'remote') {
      draft.report.fault({
        code: 'ignored',
        message: '`kind: remote`: an agent elsewhere cannot be run from its file',
        line: draft.lineOf('kind'),
      })
    }
    draft.ignore(['agent_card_url', 'auth'], 'an agent elsewhere cannot be run from its file')
  },
  codex(draft) {
    readCommon(draft)
    draft.agent.instructions = draft.text('developer_instructions') ?? draft.agent.instructions
    draft.effort('model_reasoning_effort')
    readSandbox(draft)
    readExtensions(draft, 'mcp_servers')
    draft.keep('nickname_candidates')
    draft.ignore(['approval_policy', 'skills', 'model_verbosity', 'service_tier'], 'there is nothing of the kind here')
  },
  copilot(draft) {
    readCommon(draft)
    draft.allowTools('tools')
    readExtensions(draft, 'mcp-servers')
    draft.agent.isHidden = draft.flag('disable-model-invocation') || draft.text('infer') === 'false'
    draft.keep('target', 'argument-hint', 'user-invocable', 'metadata')
    draft.ignore(['handoffs'], 'delegation takes its place')
  },
  cursor(draft) {
    readCommon(draft)
    draft.allowTools('tools')
    draft.agent.isBackground = draft.flag('is_background')
    if (draft.flag('readonly')) draft.narrowing.readOnly()
  },
  goose(draft) {
    readCommon(draft)
    draft.agent.provider = draft.text('provider')
    const settings = draft.tree('settings')
    if (settings?.kind === 'map') readGooseSettings(draft)
    draft.keep('avatar')
  },
}

function readCommon(draft: Draft): void {
  draft.agent.name = draft.text('name')?.trim() ?? ''
  draft.agent.description = draft.text('description')?.trim() ?? ''
  const model = draft.text('model')?.trim() ?? ''
  // The host's, however it is written.
  if (model !== '' && model.toLowerCase() !== 'inherit') draft.agent.model = model
}

function readSettings(draft: Draft): void {
  const temperature = draft.number('temperature')
  const topP = draft.number('top_p', 'topP')
  if (temperature !== null) draft.settings.temperature = temperature
  if (topP !== null) draft.settings.topP = topP
  draft.effort('reasoningEffort')
}

function readExtensions(draft: Draft, ...keys: readonly string[]): void {
  const tree = draft.tree(...keys)
  if (tree !== undefined) draft.agent.extensions = readServers(tree, keys[0] ?? '', draft.report)
}

function texts(draft: Draft, key: string): readonly string[] {
  const tree = draft.tree(key)
  if (tree?.kind === 'list') return draft.fields.texts(key) ?? []
  return tree?.kind === 'leaf'
    ? tree.text
        .split(',')
        .map((one) => one.trim())
        .filter((one) => one !== '')
    : []
}

/** What would loosen is left out; what narrows is kept. */
function readPermissionMode(draft: Draft): void {
  const mode = draft.text('permissionMode')
  if (mode === null || mode === 'default') return
  if (mode === 'plan') return draft.narrowing.readOnly()
  const known = ['acceptEdits', 'auto', 'dontAsk', 'bypassPermissions']
  const why = known.includes(mode) ? 'a file cannot loosen what host and runtime allow' : 'it is not known'
  draft.report.warning({
    code: 'permission',
    message: `\`permissionMode: ${mode}\` is ignored: ${why}`,
    line: draft.lineOf('permissionMode'),
  })
}

/** `{ "*": false, "github-search": true }`: a star that is false makes the rest a list of what is allowed. */
function readToolMap(draft: Draft): void {
  const tree = draft.tree('tools')
  if (tree === undefined) return
  if (tree.kind !== 'map') return draft.allowTools('tools')
  const said = [...tree.entries].map(([name, { value }]) => ({
    name,
    isOn: value.kind === 'leaf' && value.value === true,
  }))
  const isList = said.some(({ name, isOn }) => name === '*' && !isOn)
  const line = draft.lineOf('tools')
  const words = (isOn: boolean) => said.filter((one) => one.isOn === isOn && one.name !== '*').map(({ name }) => name)
  if (isList) {
    const { tools, agents } = readToolWords(words(true), line, draft.report)
    draft.agent.tools = { ...draft.agent.tools, allow: tools }
    draft.limitAgents(agents ?? [])
  }
  const off = readToolWords(words(false), line, draft.report)
  if (off.agents !== null) draft.limitAgents([])
  draft.narrowing.deny(...off.tools.map((name) => `tool:${name}`))
  draft.agent.tools = { ...draft.agent.tools, deny: [...draft.agent.tools.deny, ...off.tools] }
}

/** A sandbox fences programs; here they are not fenced, so they are forbidden where it would. */
function readSandbox(draft: Draft): void {
  const mode = draft.text('sandbox_mode')
  if (mode === null) return
  if (mode === 'read-only') {
    draft.narrowing.readOnly()
    draft.narrowing.deny('net:*')
    return draft.tightened(
      '`sandbox_mode: read-only`: programs cannot be fenced here, so none may be started',
      'sandbox_mode',
    )
  }
  if (mode === 'workspace-write') return draft.narrowing.deny('net:*')
  draft.report.warning({
    code: 'permission',
    message: `\`sandbox_mode: ${mode}\` is ignored: a file cannot loosen what host and runtime allow`,
    line: draft.lineOf('sandbox_mode'),
  })
}

function readGooseSettings(draft: Draft): void {
  const settings = draft.fields.map('settings')
  if (settings === null) return
  const temperature = settings.number('temperature')
  if (temperature !== null) draft.settings.temperature = temperature
  draft.limit('turns', settings.wholeNumber('max_turns'), 'settings')
}
