import { validateUIMessages } from 'ai'
import { agent, createRuntime, tool } from 'legate'
import { type ScriptedAnswer, scriptedModel } from 'legate/testing'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { Chance } from '../../support/chance.ts'
import { askedOf, fetchFrom, loaded, openPage, type Page, plain, untilReady } from './support.ts'

const NAMES = ['note', 'fail', 'deploy', 'helper'] as const

/** An agent that says and calls what chance says. Its helper does too, and may not ask. */
function randomHost(chance: Chance) {
  const input = z.object({ n: z.number() })
  const note = tool({ description: 'x', input, effect: 'pure', execute: ({ n }) => ({ noted: n }) })
  const fail = tool({
    description: 'x',
    input,
    effect: 'pure',
    execute: ({ n }) => {
      throw new Error(`it burns ${n}`)
    },
  })
  const deploy = tool({ description: 'x', input, execute: ({ n }) => `deployed ${n}` })
  const helper = agent({
    name: 'helper',
    instructions: 'x',
    tools: { note, fail },
    model: scriptedModel(() => answerOf(chance, ['note', 'fail'])),
  })
  return agent({
    name: 'host',
    instructions: 'x',
    tools: { note, fail, deploy },
    subagents: { helper },
    grant: { ask: ['tool:deploy'] },
    model: scriptedModel(() => answerOf(chance, NAMES)),
  })
}

function answerOf(chance: Chance, names: readonly string[]): ScriptedAnswer {
  if (chance.is(0.05)) return { error: new Error('The provider is gone.') }
  const words = Array.from({ length: 1 + chance.below(3) }, () => `w${chance.below(100)} `)
  const reasoning = chance.is(0.3) ? { reasoning: `Hm ${chance.below(100)}.` } : {}
  if (chance.is(0.5)) return { ...reasoning, chunks: words }
  const calls = Array.from({ length: 1 + chance.below(3) }, () => {
    const name = chance.pick(names)
    return { name, input: name === 'helper' ? { message: 'go' } : { n: chance.below(100) } }
  })
  return { ...reasoning, ...(chance.is(0.5) ? { chunks: words } : {}), calls }
}

/** One thing that a person does on a page that waits for nothing. */
async function act(page: Page, chance: Chance): Promise<string> {
  const { chat } = page
  const asked = askedOf(page).slice(-3)
  if (asked.length > 0 && chat.lastMessage?.metadata?.status === 'waiting') {
    for (const { id } of asked) await chat.addToolApprovalResponse({ id, approved: chance.is(0.6) })
    return 'answer'
  }
  if (chat.messages.length > 1 && chance.is(0.25)) {
    await chat.regenerate()
    return 'regenerate'
  }
  const users = chat.messages.filter(({ role }) => role === 'user')
  if (users.length > 0 && chance.is(0.2)) {
    await chat.sendMessage({ text: `changed ${chance.below(100)}`, messageId: chance.pick(users).id })
    return 'edit'
  }
  await chat.sendMessage({ text: `say ${chance.below(100)}` })
  return 'send'
}

const SEEDS = Array.from({ length: process.env['LEGATE_FULL'] === '1' ? 200 : 12 }, (_, at) => at + 1)

test.each(SEEDS)('seed %i: after everything that a person does, a page holds what a reload gives', async (seed) => {
  const chance = new Chance(seed)
  const runtime = createRuntime({ agents: [randomHost(chance)] })
  onTestFinished(() => runtime.close())
  const fetch = fetchFrom(runtime)
  const page = openPage(fetch)
  const did: string[] = []
  for (let step = 0; step < 8; step++) {
    did.push(await act(page, chance))
    await untilReady(page)

    const messages = await loaded(fetch)
    expect(messages, `${did.join()}: ${page.errors.join()}`).toEqual(plain(page.chat.messages))
    await validateUIMessages({ messages: messages as never })
    page.chat.clearError()
  }
  const again = openPage(fetch, { messages: await loaded(fetch) })
  await again.chat.resumeStream()
  expect(unanswered(again)).toEqual(unanswered(page))
})

/** Without the words on approvals: version 6 has no chunk for them, so a stream that is read again does not bring them. */
function unanswered({ chat }: Page) {
  return plain(chat.messages).map(({ parts, ...message }) => ({
    ...message,
    parts: parts.map((part) => ('approval' in part ? { ...part, approval: part.approval?.id } : part)),
  }))
}
