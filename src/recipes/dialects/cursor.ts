import type { AgentDialect } from './dialect.ts'

/** The word for a model that Cursor chooses itself. */
const FAST = 'fast'

/** The agent files of Cursor. It has no tool lists, but a file that has one all the same is narrowed by it. */
export const cursor: AgentDialect = {
  name: 'cursor',
  folders: ['.cursor/agents'],
  homeFolders: ['.cursor/agents'],
  place: '.cursor/agents',
  ending: '.md',
  signs: ['readonly', 'is_background'],
  models: ['openai', 'anthropic', 'google'],
  toolWords: {},
  serverWord: (server, tool) => `${server}__${tool}`,
  read(draft) {
    draft.common()
    draft.nameByFile()
    if (draft.agent.model === FAST) draft.ownModel('its program chooses a small one')
    draft.allowTools('tools')
    draft.agent.isBackground = draft.flag('is_background')
    if (draft.flag('readonly')) draft.narrowing.readOnly()
  },
  write(writing) {
    return {
      ...writing.common(),
      name: writing.agent.title ?? writing.agent.name,
      readonly: writing.isReadOnly() || undefined,
      is_background: writing.agent.isBackground || undefined,
    }
  },
}
