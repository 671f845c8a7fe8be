import type { Json } from '../../base/json.ts'
import type { Draft } from '../agent-file/draft.ts'
import { nameBelowAgents, nameByPath } from '../agent-file/name-by-path.ts'
import { serverTools } from '../agent-file/tool-lists.ts'
import { CHECKLIST, elsewhere, FIND, LIST, READ, SEARCH, SKILLS } from '../agent-file/tool-words.ts'
import type { Writing } from '../convert/writing.ts'
import type { AgentDialect } from './dialect.ts'
import { readPermission } from './opencode-permission.ts'

export const opencode: AgentDialect = {
  name: 'opencode',
  folders: ['.opencode/agent', '.opencode/agents'],
  homeFolders: ['.config/opencode/agent', '.config/opencode/agents'],
  place: '.opencode/agent',
  ending: '.md',
  signs: ['mode', 'permission', 'steps', 'maxSteps', 'hidden', 'disable', 'top_p'],
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
    todowrite: CHECKLIST,
    todoread: ['todo_read'],
    skill: SKILLS,
    webfetch: ['web_fetch'],
    websearch: ['web_search'],
    ...elsewhere('codesearch', 'lsp', 'question'),
  },
  slash: 'machine',
  serverWord: (server, tool) => `${server}_${tool}`,
  serverTools: (word) => serverTools(word) ?? underscored(word),
  read(draft) {
    draft.common()
    const isNested = /\/\.?opencode\/agents?\//.test(draft.report.file)
    if (draft.agent.name === '') draft.agent.name = (isNested ? nameBelowAgents : nameByPath)(draft.report.file)
    readToolMap(draft)
    draft.servers('mcp')
    draft.sampling()
    const permission = draft.tree('permission')
    if (permission !== undefined) readPermission(permission, draft)
    draft.limit('turns', draft.number('steps', 'maxSteps'), 'steps')
    const mode = draft.text('mode')
    draft.agent.isHidden = draft.flag('hidden')
    if (mode === 'primary')
      draft.report.note({ code: 'ignored', message: '`mode: primary`: it may be a subagent here too' })
    draft.keep('color', 'variant')
    draft.agent.instructions ||= draft.text('prompt') ?? ''
  },
  write(writing) {
    const { agent } = writing
    const { name: _, ...common } = writing.common()
    return {
      ...common,
      mode: 'subagent',
      ...writing.sampling('top_p'),
      steps: agent.budget?.turns,
      tools: toolMap(writing),
      permission: permissions(writing),
      hidden: agent.isHidden || undefined,
      disable: agent.isDisabled || undefined,
    }
  },
}

/** `srv_do` is the tool `do` of the server `srv`, or one of that very name. */
function underscored(word: string): readonly string[] | undefined {
  const [, server, tool] = /^([^_]+)_([^_].*)$/.exec(word) ?? []
  return server === undefined ? undefined : [word, `${server}__${tool}`]
}

/** `{ "*": false, "github-search": true }`: a star that is false makes the rest a list of what is allowed. */
function readToolMap(draft: Draft): void {
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

function toolMap(writing: Writing): Json | undefined {
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

/** The last match wins: first what is allowed, then what is asked for, then what is forbidden. */
function permissions(writing: Writing): Json | undefined {
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
