// An agent whose definition depends on the environment, for workers with different versions of the code.

import { agent } from 'legate'

const version = process.env.LEGATE_TEST_VERSION ?? 'one'
const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 }

export const poet = agent({
  name: 'poet',
  instructions: `You are version ${version}.`,
  model: {
    id: 'test/model',
    async *stream() {
      yield { type: 'text-delta', text: `version ${version}` }
      yield { type: 'finish', reason: 'stop', usage }
    },
  },
})
