import { setTimeout as sleep } from 'node:timers/promises'
import { type AnyAgent, agent } from 'legate'
import type { Model } from 'legate/models'
import { z } from 'zod'

// The agents that the official conformance suite of MCP calls by name.

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const SOUND = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA='

const nothing = z.object({})

/** A model that cannot be reached. */
const gone: Model = {
  id: 'gone',
  stream: () => {
    throw new Error('The provider is gone.')
  },
}

export const conformanceAgents: readonly AnyAgent[] = [
  agent({
    name: 'test_simple_text',
    description: 'Says a text.',
    input: nothing,
    reply: () => 'This is a simple text response for testing.',
  }),
  agent({
    name: 'test_image_content',
    description: 'Gives an image.',
    input: nothing,
    reply: () => [{ type: 'image' as const, mediaType: 'image/png', data: PIXEL }],
  }),
  agent({
    name: 'test_audio_content',
    description: 'Gives a sound.',
    input: nothing,
    reply: () => [{ type: 'audio' as const, mediaType: 'audio/wav', data: SOUND }],
  }),
  agent({
    name: 'test_error_handling',
    description: 'Fails.',
    input: nothing,
    reply: () => {
      throw new Error('This tool intentionally returns an error for testing')
    },
  }),
  agent({
    name: 'test_tool_with_progress',
    description: 'Says how far it is.',
    input: nothing,
    reply: async (_, context) => {
      for (const done of [0, 50, 100]) {
        context.progress(`${done} of 100`)
        await sleep(20)
      }
      return 'Done.'
    },
  }),
  agent({
    name: 'greet',
    description: 'Greets.',
    input: z.object({ name: z.string() }),
    reply: ({ name }) => `Hello, ${name}!`,
  }),
  agent({
    name: 'slow_compute',
    description: 'Takes its time.',
    input: z.object({ seconds: z.number(), label: z.string().optional() }),
    effect: 'pure',
    reply: async ({ seconds, label = '' }, { signal }) => {
      await sleep(seconds * 1_000, undefined, { signal })
      return `Computed ${label} in ${seconds} s.`
    },
  }),
  agent({
    name: 'failing_job',
    description: 'Fails after a while.',
    input: nothing,
    reply: async () => {
      await sleep(200)
      throw new Error('This job always fails.')
    },
  }),
  agent({
    name: 'protocol_error_job',
    description: 'Cannot even begin.',
    input: nothing,
    instructions: 'Work.',
    model: gone,
  }),
  agent({
    name: 'confirm_delete',
    description: 'Asks before it deletes.',
    input: z.object({ filename: z.string() }),
    grant: { use: ['tool:ask_person'] },
    effect: 'pure',
    reply: async ({ filename }, { ask }) => `${(await ask(`Delete ${filename}?`)) ?? 'No answer'}: ${filename}`,
  }),
  agent({
    name: 'multi_input',
    description: 'Asks two things at once.',
    input: nothing,
    grant: { use: ['tool:ask_person'] },
    effect: 'pure',
    reply: async (_, { ask }) => (await Promise.all([ask('Who?'), ask('Where?')])).join(' and '),
  }),
  agent({
    name: 'test_tool_with_task',
    description: 'Asks for a name, then works.',
    input: nothing,
    grant: { use: ['tool:ask_person'] },
    effect: 'pure',
    reply: async (_, { ask }) => {
      const name = await ask('What is your name?')
      await sleep(1_000)
      return `Worked for ${name}.`
    },
  }),
]
