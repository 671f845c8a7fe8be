import { CHECKLIST, FIND, LIST, missingTools, READ, SEARCH, SKILLS } from '../agent-file/tool-words.ts'
import type { AgentDialect } from './dialect.ts'

/** The agent files of Gemini CLI. */
export const gemini: AgentDialect = {
  name: 'gemini',
  folders: ['.gemini/agents'],
  homeFolders: ['.gemini/agents'],
  place: '.gemini/agents',
  ending: '.md',
  signs: ['timeout_mins', 'max_turns', 'mcp_servers', 'kind', 'display_name'],
  models: ['google'],
  variables: 'anywhere',
  toolWords: {
    read_file: READ,
    read_many_files: READ,
    write_file: ['write_file'],
    replace: ['edit_file'],
    search_file_content: SEARCH,
    grep_search: SEARCH,
    glob: FIND,
    list_directory: LIST,
    run_shell_command: ['shell'],
    write_todos: CHECKLIST,
    activate_skill: SKILLS,
    save_memory: ['memory_remember', 'memory_recall'],
    web_fetch: ['web_fetch'],
    google_web_search: ['web_search'],
    ...missingTools('ask_user', 'enter_plan_mode', 'exit_plan_mode'),
  },
  projectFiles: [['GEMINI.md']],
  importsFiles: true,
  serverWord: (server, tool) => (server === '*' ? 'mcp_*' : `mcp_${server}_${tool}`),
  read(draft) {
    draft.common()
    draft.allowTools('tools')
    draft.sampling()
    draft.limit('modelCalls', draft.number('max_turns'), 'max_turns')
    const minutes = draft.number('timeout_mins')
    draft.limit('wallMs', minutes === null ? null : Math.round(minutes * 60_000), 'timeout_mins')
    draft.servers('mcp_servers', 'mcpServers')
    draft.agent.title = draft.text('display_name')
    if (draft.text('kind') === 'remote') {
      const message = '`kind: remote`: an agent elsewhere cannot be run from its file'
      draft.report.fault({ code: 'ignored', message, line: draft.lineOf('kind') })
    }
    draft.ignore(['agent_card_url', 'auth'], 'an agent elsewhere cannot be run from its file')
  },
  write(writing) {
    const { agent } = writing
    const wallMs = agent.budget?.wallMs
    return {
      ...writing.common(),
      display_name: agent.title ?? undefined,
      tools: writing.toolList(null),
      temperature: agent.settings.temperature,
      max_turns: agent.budget?.modelCalls,
      timeout_mins: wallMs === undefined ? undefined : wallMs / 60_000,
      mcp_servers: writing.servers({
        only: 'includeTools',
        not: 'excludeTools',
        none: { includeTools: [] },
        timeout: 'timeout',
      }),
    }
  },
}
