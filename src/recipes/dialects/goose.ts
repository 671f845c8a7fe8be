import { modelParts } from '../agent-file/agent-file-writer.ts'
import type { AgentFileDraft } from '../agent-file/draft.ts'
import type { AgentDialect } from './dialect.ts'

/** The agent files of goose, which are not its recipes. */
export const goose: AgentDialect = {
  name: 'goose',
  folders: ['.goose/agents'],
  sharedFolders: ['.agents/agents'],
  homeFolders: ['.goose/agents', '.agents/agents', '.config/goose/agents'],
  place: '.agents/agents',
  ending: '.md',
  signs: ['provider', 'avatar', 'settings'],
  models: 'as read',
  toolWords: {},
  serverWord: (server, tool) => `${server}__${tool}`,
  read(draft) {
    draft.common()
    draft.agent.provider = draft.text('provider')
    if (draft.tree('settings')?.kind === 'map') readSettings(draft)
    draft.keep('avatar')
    const { name, description, model } = draft.agent
    if (name !== '' && description === '') draft.agent.description = model === null ? 'Agent' : `Agent (${model})`
  },
  write(writing) {
    const { agent } = writing
    const parts = modelParts(agent, 'goose')
    const { temperature } = agent.settings
    const turns = agent.budget?.modelCalls
    const settings = {
      ...(temperature === undefined ? {} : { temperature }),
      ...(turns === undefined ? {} : { max_turns: turns }),
    }
    return {
      ...writing.common(),
      provider: parts.provider ?? undefined,
      model: parts.model ?? undefined,
      settings: Object.keys(settings).length === 0 ? undefined : settings,
    }
  },
}

function readSettings(draft: AgentFileDraft): void {
  const settings = draft.fields.map('settings')
  if (settings === null) return
  const temperature = settings.number('temperature')
  if (temperature !== null) draft.settings.temperature = temperature
  draft.limit('modelCalls', settings.wholeNumber('max_turns'), 'settings')
}
