// An agent that writes a file of its workspace after a person has allowed it.

import { agent, tool } from 'legate'
import { scriptedModel } from 'legate/testing'

const note = tool({
  description: 'Writes.',
  input: { type: 'object', properties: {} },
  execute: async (_, { files }) => {
    await files.write('/workspace/note.txt', 'noted')
    return 'written'
  },
})
export const noter = agent({
  name: 'noter',
  instructions: 'Note.',
  tools: { note },
  grant: { ask: ['tool:note'], use: ['tool:*', 'file.*:/workspace/**'] },
  model: scriptedModel(({ messages }) =>
    messages.at(-1).role === 'tool' ? 'Done.' : { calls: [{ name: 'note', input: {} }] },
  ),
})
