import type { Json } from '../../core/base/json.ts'
import { readHooks, writtenHooks } from '../agent-file/hooks.ts'
import { nameByPath } from '../agent-file/names.ts'
import { OUR_TOOLS } from '../agent-file/tool-words.ts'
import { readSandbox } from './codex.ts'
import type { AgentDialect } from './dialect.ts'

/** Our own dialect, with keys for everything an agent file can say. */
export const legate: AgentDialect = {
  name: 'legate',
  folders: ['.legate/agents'],
  homeFolders: ['.legate/agents', '.config/legate/agents'],
  place: '.legate/agents',
  ending: '.md',
  signs: ['grant', 'budget', 'briefing', 'input', 'output'],
  models: 'as read',
  toolWords: Object.fromEntries(OUR_TOOLS.map((name) => [name, [name]])),
  serverWord: (server, tool) => `${server}__${tool}`,
  read(draft) {
    draft.common()
    if (draft.agent.name === '') draft.agent.name = nameByPath(draft.report.file)
    draft.agent.provider = draft.text('provider')
    draft.agent.title = draft.text('title')
    draft.agent.prompt = draft.text('prompt')
    draft.allowTools('tools')
    draft.denyTools('disallowedTools')
    draft.sampling()
    draft.servers('mcpServers', 'extensions')
    draft.agent.skills = draft.texts('skills')
    draft.agent.isBackground = draft.flag('background')
    draft.agent.isHidden = draft.flag('hidden')
    draft.agent.neverAsks = draft.flag('neverAsks')
    readSandbox(draft, 'sandbox')
    readHooks(draft)
    draft.limit('modelCalls', draft.number('maxTurns', 'max_turns'), 'maxTurns')
  },
  write(writing) {
    const { agent } = writing
    return {
      ...writing.common(),
      provider: agent.provider ?? undefined,
      title: agent.title ?? undefined,
      prompt: writing.prompt(),
      tools: writing.toolList('agent', 'names'),
      disallowedTools: writing.list(agent.tools.deny),
      ...writing.sampling('topP'),
      mcpServers: writing.serversAndNames({
        only: 'tools',
        not: 'excludeTools',
        none: { enabled: false },
        timeout: 'timeout',
      }),
      skills: writing.list(agent.skills),
      background: agent.isBackground || undefined,
      hidden: agent.isHidden || undefined,
      disable: agent.isDisabled || undefined,
      neverAsks: agent.neverAsks || undefined,
      sandbox: agent.sandbox ?? undefined,
      input: (agent.input as Json | null) ?? undefined,
      output: (agent.output as Json | null) ?? undefined,
      grant: (agent.grant as Json | null) ?? undefined,
      budget: (agent.budget as Json | null) ?? undefined,
      briefing: agent.briefing ?? undefined,
      hooks: writtenHooks(agent.hooks),
    }
  },
}
