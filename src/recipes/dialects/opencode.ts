import { isRecord, type Json } from '../../core/base/json.ts'
import type { AgentFileWriter } from '../agent-file/agent-file-writer.ts'
import type { AgentFileDraft } from '../agent-file/draft.ts'
import { nameBelowAgents, nameByPath } from '../agent-file/names.ts'
import { CHECKLIST, FIND, LIST, missingTools, READ, SEARCH, SKILLS, serverTools } from '../agent-file/tool-words.ts'
import type { AgentDialect } from './dialect.ts'
import { readPermissions } from './opencode-permissions.ts'

/** The agent files of opencode, of both versions. */
export const opencode: AgentDialect = {
  name: 'opencode',
  folders: ['.opencode/agent', '.opencode/agents'],
  homeFolders: ['.config/opencode/agent', '.config/opencode/agents'],
  place: '.opencode/agent',
  ending: '.md',
  signs: ['mode', 'permission', 'permissions', 'steps', 'maxSteps', 'hidden', 'disable', 'disabled', 'top_p'],
  isLike: (fields) => fields.get('tools')?.kind === 'map',
  isDescribed: false,
  models: 'all',
  toolWords: {
    read: READ,
    write: ['write_file'],
    edit: ['edit_file', 'write_file'],
    patch: ['edit_file', 'write_file', 'delete_file'],
    apply_patch: ['edit_file', 'write_file', 'delete_file'],
    grep: SEARCH,
    glob: FIND,
    list: LIST,
    bash: ['shell'],
    shell: ['shell'],
    todowrite: CHECKLIST,
    todoread: ['todo_read'],
    skill: SKILLS,
    webfetch: ['web_fetch'],
    websearch: ['web_search'],
    ...missingTools('codesearch', 'lsp', 'question'),
  },
  slash: 'machine',
  projectFiles: [['AGENTS.md', 'CLAUDE.md']],
  serverWord: (server, tool) => `${server}_${tool}`,
  serverTools: (word) => serverTools(word) ?? underscored(word),
  read(draft) {
    readModel(draft)
    const isNested = /\/\.?opencode\/agents?\//.test(draft.report.file)
    if (draft.agent.name === '') draft.agent.name = (isNested ? nameBelowAgents : nameByPath)(draft.report.file)
    readToolMap(draft)
    draft.servers('mcp')
    draft.sampling()
    readPermissions(draft)
    draft.limit('modelCalls', draft.number('steps', 'maxSteps'), 'steps')
    readMode(draft)
    draft.agent.isDisabled = draft.flag('disabled')
    draft.keep('color', 'variant')
    draft.ignore(['request'], 'what is sent to a provider is not chosen by a file')
    draft.agent.instructions ||= draft.text('prompt', 'system') ?? ''
  },
  write(writing) {
    const { agent } = writing
    const { name: _, ...common } = writing.common()
    return {
      ...common,
      mode: 'subagent',
      ...writing.sampling('top_p'),
      steps: agent.budget?.modelCalls,
      tools: toolMap(writing),
      permission: permissions(writing),
      mcp: localServers(writing.servers({ timeout: 'timeout' })),
      hidden: agent.isHidden || undefined,
      disable: agent.isDisabled || undefined,
    }
  },
}

/** Reads `provider/model`, with a variant behind `#`, or as the map `{ providerID, model, variant }`. */
function readModel(draft: AgentFileDraft): void {
  const tree = draft.tree('model')
  if (tree?.kind !== 'map') draft.common()
  else {
    draft.common('model')
    const fields = draft.fields.map('model')
    const [provider, model] = [fields?.text('providerID'), fields?.text('model') ?? fields?.text('id')]
    draft.agent.model = provider && model ? `${provider}/${model}` : (model ?? null)
  }
  draft.agent.model = draft.agent.model?.replace(/#[^#]*$/, '') ?? null
}

/** Reads who may start the agent. One that only people start is hidden from models, and so is one of an unknown mode. */
export function readMode(draft: AgentFileDraft): void {
  const mode = draft.text('mode')
  const isHidden = draft.flag('hidden')
  const isOffered = mode === null || mode === 'all' || mode === 'subagent'
  draft.agent.isHidden = isHidden || !isOffered
  if (isOffered) return
  if (mode !== 'primary') return draft.strictest('mode', mode, 'primary')
  const message = '`mode: primary`: people can start it, and no model is offered it'
  draft.report.note({ code: 'ignored', message, line: draft.lineOf('mode') })
}

/** Writes a program and its arguments as one list, as this dialect does. */
function localServers(servers: Json | undefined): Json | undefined {
  if (!isRecord(servers)) return servers
  const entries = Object.entries(servers).map(([name, server]) => {
    if (!isRecord(server) || typeof server['command'] !== 'string') return [name, server] as const
    const { command, args, env, ...others } = server
    const words = [command, ...(Array.isArray(args) ? args : [])]
    return [name, { type: 'local', command: words, ...(env === undefined ? {} : { environment: env }), ...others }]
  })
  return Object.fromEntries(entries)
}

/** Reads `srv_do` as the tool `do` of the server `srv`, or as a tool of that very name. */
function underscored(word: string): readonly string[] | undefined {
  const [, server, tool] = /^([^_]+)_([^_].*)$/.exec(word) ?? []
  return server === undefined ? undefined : [word, `${server}__${tool}`]
}

/** Reads `{ "*": false, "github-search": true }`: with a false star, the rest is the list of allowed tools. */
function readToolMap(draft: AgentFileDraft): void {
  const tree = draft.tree('tools')
  if (tree?.kind !== 'map') return draft.allowTools('tools')
  const flags = [...tree.entries].map(([name, { value }]) => ({
    name,
    isOn: value.kind === 'leaf' && value.value === true,
  }))
  const isList = flags.some(({ name, isOn }) => name === '*' && !isOn)
  const words = (isOn: boolean) => flags.filter((one) => one.isOn === isOn && one.name !== '*').map(({ name }) => name)
  if (isList) draft.allowWords(words(true), 'tools')
  draft.denyWords(words(false), 'tools')
}

function toolMap(writing: AgentFileWriter): Json | undefined {
  const words = writing.toolList('task')
  const on = words === undefined ? [] : [['*', false] as const, ...words.map((word) => [word, true] as const)]
  const off = writing.deniedWords().map((word) => [word, false] as const)
  const all = [...on, ...off]
  return all.length === 0 ? undefined : Object.fromEntries(all)
}

const PERMISSIONS = [
  ['bash', 'exec'],
  ['edit', 'file.write'],
  ['read', 'file.read'],
  ['list', 'file.list'],
  ['webfetch', 'net'],
  ['task', 'agent'],
] as const

/** Writes permissions. The last match wins, so first come allowed, then asked, then denied patterns. */
function permissions(writing: AgentFileWriter): Json | undefined {
  const entries = PERMISSIONS.flatMap(([key, domain]): [string, Json][] => {
    const only = writing.only(domain)
    const rules: [string, Json][] = [
      ...(only ?? []).map((pattern): [string, Json] => [pattern, 'allow']),
      ...writing.asked(domain).map((pattern): [string, Json] => [pattern, 'ask']),
      ...writing.denied(domain).map((pattern): [string, Json] => [pattern, 'deny']),
    ]
    const [first] = rules
    if (first === undefined) return only === null ? [] : [[key, 'deny']]
    if (only === null && rules.length === 1 && first[0] === '*') return [[key, first[1]]]
    return [[key, Object.fromEntries([['*', only === null ? 'allow' : 'deny'], ...rules])]]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}
