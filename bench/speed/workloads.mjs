// The work that `npm run speed` measures, on the adapter of the side-by-side benchmark. Each gives a function that does it once.
import { chain, delegation, streaming } from '../adapter.mjs'

const DEPTH = 8
const DELTAS = 2_500
export const WIDTH = 200

let calls = 0
const delegate = (to) => ({ kind: 'delegate', tasks: [{ id: `c${++calls}`, task: 'TASK', to }] })
const say = (text) => ({ kind: 'text', text })

/** A host delegates to one subagent, and answers. */
async function w1() {
  const think = async (role, { results }) =>
    role === 'sub' ? say('done') : results === null ? delegate('sub') : say('end')
  const { run } = await delegation({ brain: { think } })
  return () => run('go')
}

/** A host delegates to many subagents at once. */
async function wide() {
  const tasks = () => ({ kind: 'delegate', tasks: Array.from({ length: WIDTH }, () => delegate('sub').tasks[0]) })
  const think = async (role, { results }) => (role === 'sub' ? say('done') : results === null ? tasks() : say('end'))
  const { run } = await delegation({ brain: { think } })
  return () => run('go')
}

/** A chain of delegations, eight levels deep. */
async function w3() {
  const think = async (role, { results }) => {
    const depth = Number(role.slice(1))
    if (results !== null) return say(`${depth}(${results[0]})`)
    return depth === DEPTH ? say('leaf') : delegate(`L${depth + 1}`)
  }
  const { run } = await chain({ brain: { think }, depth: DEPTH })
  return () => run('go')
}

/** A subagent streams its answer in many pieces to a reader of the events. */
async function w5() {
  const stream = { kind: 'stream', count: DELTAS }
  const think = async (role, { results }) => (role === 'sub' ? stream : results === null ? delegate('sub') : say('end'))
  const { run } = await streaming({ brain: { think } })
  return () => run('go', async () => undefined)
}

export const WORKLOADS = { w1, wide, w3, w5 }
