// Three agents look for the same fact. Two answers are enough: the third is cancelled. One agent that fails is seen, and
// does not end the others.

import assert from 'node:assert/strict'
import { agent, createRuntime } from 'legate'
import { joinSpawned } from 'legate/background'
import { scriptedModel } from 'legate/testing'

const scout = agent({
  name: 'scout',
  instructions: 'Find the number of moons of the planet you are given, in one source.',
  // Real models go here: this one answers late for one source, and fails for another.
  model: scriptedModel(({ messages }) => {
    const source = String(messages.at(-1)?.content)
    if (source === 'a broken link') return { error: new Error('not found') }
    return { text: `Two, says ${source}.`, delayMs: source === 'a slow archive' ? 60_000 : 50 }
  }),
})

const runtime = createRuntime()
const sources = ['an almanac', 'a broken link', 'a slow archive', 'an atlas']
const spawned = await Promise.all(sources.map((source) => runtime.spawn(scout, source)))

const { status, outcomes } = await joinSpawned(spawned, 2, { losers: 'cancel' })
await runtime.idle()

for (const [at, outcome] of outcomes.entries()) {
  console.log(`${sources[at]}: ${outcome?.status ?? 'not needed'} ${outcome?.text ?? ''}`)
}
const late = await spawned[2]?.result()
await runtime.close()

assert.equal(status, 'met')
assert.deepEqual(
  outcomes.map((outcome) => outcome?.status ?? null),
  ['completed', 'failed', null, 'completed'],
)
assert.equal(late?.status, 'cancelled')
