import {
  type Agent,
  type AgentCore,
  type AgentDefinition,
  type AgentInput,
  type AgentOutput,
  type AgentWritten,
  type DirectInput,
  type Extension,
  markAgent,
  type RunOptions,
} from './agent/agent.ts'
import { defineAgent } from './agent/definition.ts'
import { Direct } from './agent/input.ts'
import { methodsOf, withExtension } from './agent/with-extension.ts'
import { RunError } from './base/error.ts'
import type { Schema } from './base/schema.ts'
import type { CompletedOutcome, Run } from './conversation/run.ts'
import { createRuntime, Runtime } from './runtime.ts'
import { currentCall } from './tool/current.ts'

/** Defines an agent: an immutable value, which may be run by itself, by a runtime, or as a subagent of others. */
export function agent<
  const In extends Schema | undefined = undefined,
  const Out extends Schema | undefined = undefined,
>(definition: AgentDefinition<In, Out>): Agent<AgentInput<In>, AgentOutput<Out>, AgentWritten<Out>> {
  return made(defineAgent(definition))
}

/** The object that users hold of an agent. */
function made<In, Out, Written>(core: AgentCore): Agent<In, Out, Written> {
  const start = (input: In | DirectInput, options?: RunOptions) =>
    runtimeHere().run(agent, new Direct(input) as In, options)
  const agent = Object.defineProperties(
    {
      generate: (input: In | DirectInput, options?: RunOptions) => {
        const outcome = completed(start(input, options))
        // A tool that ends without awaiting its child cancels it: that is no error nobody handled.
        if (currentCall() !== undefined) outcome.catch(() => undefined)
        return outcome
      },
      stream: start,
      use: (extension: Extension) => made(withExtension(core, extension)),
    },
    Object.getOwnPropertyDescriptors(core),
  ) as unknown as Agent<In, Out, Written>
  if (core.extensions.length > 0) Object.defineProperties(agent, methodsOf(agent))
  return markAgent(agent)
}

async function completed<Out, Written>(run: Run<Out, Written>): Promise<CompletedOutcome<Out>> {
  const outcome = await run.result
  if (outcome.status === 'completed') return outcome as CompletedOutcome<Out>
  throw new RunError('run', `The run ${run.id} ended ${outcome.status}: ${outcome.error?.message ?? ''}`, {
    details: { outcome },
    isRetryable: outcome.retryable,
  })
}

let shared: Runtime | undefined

/** The runtime of the tool call we are in, else one in memory for all agents that are run by themselves. */
function runtimeHere(): Runtime {
  const current = currentCall()?.runtime
  if (current instanceof Runtime) return current
  shared ??= createRuntime()
  return shared
}
