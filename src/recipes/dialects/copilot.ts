import { CHECKLIST, LIST, missingTools, READ, SEARCH } from '../agent-file/tool-words.ts'
import type { AgentDialect } from './dialect.ts'

/** The agent files of GitHub Copilot. */
export const copilot: AgentDialect = {
  name: 'copilot',
  folders: ['.github/agents'],
  homeFolders: [],
  place: '.github/agents',
  ending: '.agent.md',
  otherEndings: ['.chatmode.md'],
  signs: [
    ...['mcp-servers', 'handoffs', 'user-invocable', 'disable-model-invocation', 'argument-hint', 'target', 'infer'],
  ],
  models: ['openai', 'anthropic', 'google'],
  variables: 'anywhere',
  toolWords: {
    read: READ,
    view: READ,
    edit: ['edit_file', 'write_file'],
    create: ['write_file'],
    search: [...SEARCH, 'list_directory'],
    list: LIST,
    execute: ['shell'],
    shell: ['shell'],
    terminal: ['shell'],
    todo: CHECKLIST,
    web: ['web_fetch', 'web_search'],
    fetch: ['web_fetch'],
    ...missingTools('browser', 'vscode', 'githubRepo', 'notebook', 'codebase', 'usages', 'problems', 'changes'),
  },
  serverWord: (server, tool) => `${server}/${tool}`,
  read(draft) {
    draft.common()
    draft.nameByFile()
    draft.allowTools('tools')
    draft.servers('mcp-servers')
    draft.agent.isHidden = draft.flag('disable-model-invocation') || draft.text('infer') === 'false'
    draft.keep('target', 'argument-hint', 'user-invocable', 'metadata')
    draft.ignore(['handoffs'], 'delegation takes its place')
  },
  write(writing) {
    return {
      ...writing.common(),
      name: writing.agent.title ?? writing.agent.name,
      tools: writing.toolList('agent'),
      'mcp-servers': writing.servers({ only: 'tools', none: { tools: [] } }),
      'disable-model-invocation': writing.agent.isHidden || undefined,
    }
  },
}
