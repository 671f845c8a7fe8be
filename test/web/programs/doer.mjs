// An agent that does what its input says: `Do` and a JSON list of answers, one for each time that its model is asked. Each call of `deploy` leaves
// a line in a file.

import { appendFileSync } from 'node:fs'
import { agent, tool } from 'legate'
import { askTools } from 'legate/background'
import { scriptedModel } from 'legate/testing'

const marks = process.env.LEGATE_TEST_MARKS ?? ''
const ANY = { type: 'object', properties: {}, additionalProperties: true }

function does(description, execute, more = {}) {
  return tool({ description, input: ANY, execute, ...more })
}

export const doer = agent({
  name: 'doer',
  description: 'Does what it is told.',
  instructions: 'You do what you are told.',
  tools: {
    ...askTools(),
    deploy: does(
      'Deploys.',
      (input) => {
        appendFileSync(marks, `${JSON.stringify(input)}\n`)
        return 'deployed'
      },
      { effect: 'effectful' },
    ),
    run: does('Runs a program.', () => 'ran', { needs: ({ command }) => [`exec:${command}`] }),
    echo: does('Says it again.', ({ out }) => out, { effect: 'pure' }),
  },
  grant: { use: ['model:*', 'tool:echo', 'tool:ask_person', 'tool:run'], ask: ['tool:deploy', 'exec:*'] },
  model: scriptedModel(({ messages }) => {
    const [told] = messages.filter(({ role }) => role === 'user')
    const answers = JSON.parse(textOf(told?.content).slice('Do '.length))
    const said = messages.filter(({ role }) => role === 'agent' || role === 'assistant').length
    return answers[said] ?? 'That was all.'
  }),
})

function textOf(content) {
  return typeof content === 'string' ? content : (content ?? []).map(({ text = '' }) => text).join('')
}
