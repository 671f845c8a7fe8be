// An agent that does what it is told with the files of its folder: "read_text_file serve.json". Its answer is what the tool said.

import { agent } from 'legate'
import { scriptedModel } from 'legate/testing'
import { fileTools } from 'legate/tools'

export const reader = agent({
  name: 'reader',
  instructions: 'You read files.',
  tools: fileTools(),
  grant: { use: ['tool:*', 'model:*', 'file.*:/workspace/**'] },
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last.role === 'tool') return String(last.content) || '(nothing)'
    const [name, place, content] = String(last.content).split(' ')
    const path = `/workspace/${place}`
    const input = name === 'search_files' ? { path: '/workspace', pattern: place } : { path }
    return { calls: [{ name, input: content === undefined ? input : { ...input, content } }] }
  }),
})
