import type { AnyAgent, Id, Json, Run, Runtime, Turn } from '../../index.ts'
import { CliError } from '../command.ts'
import { shortId } from '../find-run.ts'
import { oneLine } from '../terminal/clean.ts'

const GO_ON = 'Go on where you stopped.'

/**
 * Takes up a run that was cancelled, as one more of its conversation: the agent reads what was said and done and goes on from
 * there. Throws a CliError where that cannot be.
 */
export async function goOn(runtime: Runtime, target: Turn, agents: readonly AnyAgent[]): Promise<Run> {
  const id = shortId(target.id)
  const { status } = target.outcome ?? { status: 'running' }
  const conversation = runtime.store.conversation(target.conversationId)
  if (status !== 'cancelled') throw new CliError(`The run ${id} is over: ${status}. There is nothing to resume.`)
  if (conversation?.type !== 'user')
    throw new CliError(`The run ${id} is a subagent's: only its host can ask it again.`)
  const { name, inline } = conversation.agent
  if (inline !== undefined) return oneMore(runtime, conversation.id, GO_ON)
  const agent = agents.find((one) => one.name === name)
  if (agent === undefined) throw new CliError(`The module exports no agent "${oneLine(name)}", whose run ${id} is.`)
  const input = agent.input === null ? GO_ON : await sameInput(agent, target)
  return runtime.run(agent, input as never, { conversationId: conversation.id })
}

/** The agent is in the row: one more message in its conversation is one more run of it. */
export async function oneMore(runtime: Runtime, conversationId: Id, message: string): Promise<Run> {
  const talk = await runtime.conversation(conversationId)
  const turnId = await talk.mutate((change) => {
    change.createNode({ kind: 'user_message', content: message })
    return change.turnId
  })
  return runtime.attach(turnId)
}

/** An agent with a schema takes no other words: it is asked the same once more, after all that was said. */
async function sameInput({ name, input }: AnyAgent, { id, conversationId, input: asked }: Turn): Promise<Json> {
  const checked = await input?.validate(asked)
  if (checked === undefined || checked.ok) return asked
  throw new CliError(
    `The run ${shortId(id)} was cancelled, and the input schema of "${oneLine(name)}" does not take what it was asked a ` +
      `second time (${oneLine(checked.issues.map(({ message }) => message).join('; '))}). Go on in your program: runtime.run(agent, input, ` +
      `{ conversationId: '${conversationId}' }).`,
  )
}
