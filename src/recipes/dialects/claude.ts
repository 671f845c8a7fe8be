import { isAbsent } from '../../core/base/text-tree/tree.ts'
import { AGENT_MEMORIES } from '../agent-file/agent-file.ts'
import type { AgentFileWriter } from '../agent-file/agent-file-writer.ts'
import type { AgentFileDraft } from '../agent-file/draft.ts'
import { readHooks, writtenHooks } from '../agent-file/hooks.ts'
import { CHECKLIST, FIND, LIST, MEMORY, missingTools, READ, SEARCH, SKILLS } from '../agent-file/tool-words.ts'
import type { AgentDialect } from './dialect.ts'

/** The agent files of Claude Code. */
export const claude: AgentDialect = {
  name: 'claude',
  folders: ['.claude/agents'],
  homeFolders: ['.claude/agents'],
  place: '.claude/agents',
  ending: '.md',
  signs: ['permissionMode', 'disallowedTools', 'maxTurns', 'mcpServers', 'initialPrompt', 'isolation', 'background'],
  models: ['anthropic'],
  toolWords: {
    Read: READ,
    Write: ['write_file'],
    Edit: ['edit_file'],
    MultiEdit: ['edit_file'],
    Grep: SEARCH,
    Glob: FIND,
    LS: LIST,
    Bash: ['shell'],
    PowerShell: ['shell'],
    TodoWrite: CHECKLIST,
    TodoRead: ['todo_read'],
    Skill: SKILLS,
    WebFetch: ['web_fetch'],
    WebSearch: ['web_search'],
    ...missingTools('NotebookEdit', 'NotebookRead', 'BashOutput', 'KillBash', 'KillShell', 'SlashCommand', 'LSP'),
    ...missingTools('AskUserQuestion', 'EnterPlanMode', 'ExitPlanMode', 'ListMcpResources', 'ReadMcpResource'),
    ...missingTools('TaskCreate', 'TaskGet', 'TaskList', 'TaskOutput', 'TaskStop', 'TaskUpdate', 'SendMessage'),
    ...missingTools('TeamCreate', 'TeamDelete', 'ToolSearch'),
  },
  projectFiles: [['CLAUDE.md', '.claude/CLAUDE.md'], ['CLAUDE.local.md']],
  importsFiles: true,
  serverWord: (server, tool) => `mcp__${server}__${tool}`,
  read(draft) {
    draft.common()
    draft.allowTools('tools')
    draft.narrowing.freePrograms()
    draft.denyTools('disallowedTools')
    draft.effort('effort', true)
    draft.limit('modelCalls', draft.number('maxTurns'), 'maxTurns')
    draft.servers('mcpServers')
    draft.agent.skills = draft.texts('skills')
    draft.agent.isBackground = draft.flag('background')
    draft.agent.prompt = draft.text('initialPrompt')
    readPermissionMode(draft)
    draft.keep('color')
    readIsolation(draft)
    readHooks(draft)
    readMemory(draft)
    draft.agent.omitsProjectFiles = draft.flag('omitClaudeMd')
    draft.ignore(['observer', 'autoCompactWindow'], 'there is nothing of the kind here')
  },
  write(writing) {
    const { agent } = writing
    return {
      ...writing.common(),
      tools: allowedTools(writing),
      disallowedTools: deniedTools(writing),
      permissionMode: writing.isReadOnly() ? 'plan' : agent.neverAsks ? 'dontAsk' : undefined,
      maxTurns: agent.budget?.modelCalls,
      effort: agent.settings.reasoning,
      mcpServers: writing.serversAndNames({}),
      skills: writing.list(agent.skills),
      background: agent.isBackground || undefined,
      initialPrompt: writing.prompt(),
      hooks: writtenHooks(agent.hooks),
      memory: agent.memory ?? undefined,
      omitClaudeMd: agent.omitsProjectFiles || undefined,
    }
  },
}

/** Reads the memory. The tools for it are the agent's, whatever its list of tools says. */
function readMemory(draft: AgentFileDraft): void {
  const tree = draft.tree('memory')
  if (isAbsent(tree)) return
  const said = tree.kind === 'leaf' ? tree.text.trim() : ''
  const memory = AGENT_MEMORIES.find((one) => one === said)
  if (memory === undefined)
    return draft.demand(`memory${said === '' ? '' : `: ${said}`}`, 'memory', 'a memory in a form that is not known')
  draft.agent.memory = memory
  const { tools } = draft.agent
  if (tools.allow !== null) draft.agent.tools = { ...tools, allow: [...new Set([...tools.allow, ...MEMORY])] }
}

/** Reads the isolation: nothing here gives an agent a copy of the files, so a file that asks for one is not started. */
function readIsolation(draft: AgentFileDraft): void {
  const tree = draft.fields.get('isolation')
  if (tree === undefined || isAbsent(tree)) return
  const said = tree.kind === 'leaf' ? `: ${tree.text}` : ''
  draft.demand(`isolation${said}`, 'isolation', 'files or a machine of its own')
}

/** Reads the permission mode: keeps what narrows and drops what would loosen. */
function readPermissionMode(draft: AgentFileDraft): void {
  const mode = draft.text('permissionMode')
  if (mode === null || mode === 'default') return
  if (mode === 'plan') return draft.narrowing.readOnly()
  if (mode === 'dontAsk') {
    draft.agent.neverAsks = true
    return
  }
  if (!['acceptEdits', 'auto', 'bypassPermissions'].includes(mode)) {
    draft.narrowing.readOnly()
    return draft.strictest('permissionMode', mode, 'plan')
  }
  draft.report.warning({
    code: 'permission',
    message: `\`permissionMode: ${mode}\` is ignored: a file cannot loosen what host and runtime allow`,
    line: draft.lineOf('permissionMode'),
  })
}

/**
 * Writes `Read, Bash(git:*), Task(reviewer)`: programs, hosts and paths go into the brackets of the tool that uses
 * them.
 */
function allowedTools(writing: AgentFileWriter): string | string[] | undefined {
  const list = writing.toolList('Task', 'names')
  if (list === undefined) return undefined
  const words = list.flatMap((word) => limited(word, writing))
  return words.length === 0 ? [] : words.join(', ')
}

const LIMITS = {
  Bash: 'exec',
  WebFetch: 'net',
  Read: 'file.read',
  Grep: 'file.list',
  Glob: 'file.list',
  LS: 'file.list',
  Edit: 'file.write',
  Write: 'file.write',
} as const satisfies Readonly<Record<string, Parameters<AgentFileWriter['only']>[0]>>

function limited(word: string, writing: AgentFileWriter): string[] {
  if (!Object.hasOwn(LIMITS, word)) return [word]
  const only = writing.only(LIMITS[word as keyof typeof LIMITS])
  // A tool with an empty limit is denied elsewhere instead.
  return only === null || only.length === 0 ? [word] : only.map((pattern) => bracketed(word, pattern))
}

function deniedTools(writing: AgentFileWriter): string | undefined {
  const tools = writing.deniedWords()
  // The permission mode already denies programs.
  const programs = writing.isReadOnly() ? [] : writing.denied('exec')
  const isSaid = writing.isReadOnly() || (tools.includes('Write') && tools.includes('Edit'))
  const words = [
    ...tools,
    ...programs.map((pattern) => bracketed('Bash', pattern)),
    ...(isSaid ? [] : writing.denied('file.write').map((pattern) => bracketed('Edit', pattern))),
    ...writing.denied('file.read').map((pattern) => bracketed('Read', pattern)),
    ...writing.denied('file.list').map((pattern) => bracketed('Glob', pattern)),
    ...writing.denied('net').map((pattern) => bracketed('WebFetch', pattern)),
    ...writing.denied('agent').map((name) => bracketed('Task', name)),
  ]
  return words.length === 0 ? undefined : words.join(', ')
}

function bracketed(word: string, pattern: string): string {
  if (word === 'WebFetch') return `WebFetch(domain:${pattern})`
  return `${word}(${word === 'Bash' ? pattern.replace(/ \*$/, ':*') : pattern})`
}
