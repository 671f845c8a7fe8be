import type { AgentFileDraft } from '../agent-file/draft.ts'
import { CHECKLIST, FIND, LIST, missingTools, READ, SEARCH, SKILLS } from '../agent-file/tool-words.ts'
import type { AgentDialect } from './dialect.ts'
import { readMode } from './opencode.ts'

/** How many model calls an agent has whose file does not say it. */
const STEPS = 10

/** The agent files of AgentScope-Java 2. */
export const agentscope: AgentDialect = {
  name: 'agentscope',
  folders: ['workspace/subagents'],
  homeFolders: [],
  place: 'workspace/subagents',
  ending: '.md',
  signs: ['workspace', 'expose_to_user', 'exposeToUser', 'maxIters'],
  models: 'as read',
  toolWords: {
    read_file: READ,
    grep_files: SEARCH,
    glob_files: FIND,
    list_files: LIST,
    execute: ['shell'],
    todo_write: CHECKLIST,
    memory_save: ['memory_remember'],
    memory_search: ['memory_recall'],
    memory_get: ['memory_recall'],
    load_skill_through_path: SKILLS,
    ...missingTools('agent_send', 'agent_list', 'agent_generate', 'task_output', 'task_cancel', 'task_list', 'team'),
    ...missingTools('wait_async_results', 'session_list', 'session_search', 'session_history'),
    ...missingTools('plan_enter', 'plan_write', 'plan_exit'),
  },
  serverWord: (server, tool) => `${server}__${tool}`,
  read(draft) {
    draft.common()
    draft.nameByFile()
    draft.agent.title = draft.text('display_name') ?? draft.agent.title
    // `openai:gpt-5`: a part with digits, as in `qwen3:4b`, is no provider.
    draft.agent.model = draft.agent.model?.replace(/^([a-z][a-z-]*):(?=.)/, '$1/') ?? null
    draft.allowTools('tools')
    draft.agent.skills = draft.texts('skills')
    // The list names all skills that it may use: they stand in its instructions, and it loads no other.
    if (draft.agent.skills.length > 0) draft.narrowing.deny(SKILLS.map((tool) => `tool:${tool}`))
    draft.sampling()
    draft.limit('modelCalls', draft.number('steps', 'maxIters') ?? STEPS, 'steps')
    readMode(draft)
    readWorkspace(draft)
    draft.keep('variant', 'expose_to_user', 'exposeToUser', 'enable_pending_tool_recovery')
  },
  write(writing) {
    const { agent } = writing
    const { name: _, ...common } = writing.common()
    return {
      ...common,
      display_name: agent.title ?? undefined,
      mode: 'subagent',
      workspace: { mode: 'shared' },
      tools: writing.toolList('agent_spawn'),
      skills: writing.list(agent.skills),
      ...writing.sampling('top_p'),
      steps: agent.budget?.modelCalls,
      hidden: agent.isHidden || undefined,
    }
  },
}

/**
 * Reads the workspace. Here an agent shares that of its host; a file that asks for its own is not started. A text, as files of
 * people have it, means nothing to their program.
 */
function readWorkspace(draft: AgentFileDraft): void {
  draft.keep('workspace')
  const tree = draft.fields.get('workspace')
  const isMap = tree?.kind === 'map'
  const entries = isMap ? tree.entries : new Map()
  const mode = isMap ? draft.fields.map('workspace')?.text('mode')?.toLowerCase() : null
  if (entries.has('path')) draft.demand('workspace.path', 'workspace', 'a workspace that has its instructions')
  else if (mode == null) {
    const message = 'its program gives it a workspace of its own: here it works in that of its host'
    draft.report.note({ code: 'ignored', message, line: draft.lineOf('workspace') })
  } else if (mode !== 'shared') draft.demand(`workspace.mode: ${mode}`, 'workspace', 'a workspace of its own')
}
