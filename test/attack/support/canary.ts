import { type AnyAgent, agent, type Grant, tool } from 'legate'
import { type Script, type ScriptedModel, scriptedModel } from 'legate/testing'
import { asksThenSays, callsThenSays } from '../../support/agents.ts'

/** Tools that leave a trace outside of the run. */
export function canaries(...names: readonly string[]) {
  const ran: string[] = []
  const named = (name: string) =>
    tool({
      description: name,
      input: { type: 'object' },
      effect: 'pure',
      execute: () => {
        ran.push(name)
        return `${name} ran`
      },
    })
  return { ran, tools: Object.fromEntries(names.map((name) => [name, named(name)])) }
}

export interface AgentParts {
  readonly grant?: Grant | undefined
  readonly tools?: Readonly<Record<string, ReturnType<typeof tool>>>
  readonly script?: Script
  readonly extra?: object
}

/** An agent that calls each of its tools by name, shown or not, and says what came back. */
export function trying(
  name: string,
  { grant, tools = {}, script, extra = {} }: AgentParts,
): AnyAgent & { readonly model: ScriptedModel } {
  const model = scriptedModel(script ?? callsThenSays(...Object.keys(tools)), `${name}/model`)
  const limits = grant === undefined ? {} : { grant }
  return agent({ name, instructions: '', model, tools, ...limits, ...extra } as never) as AnyAgent & {
    readonly model: ScriptedModel
  }
}

/** An agent that asks `below` once. */
export function asking(below: AnyAgent, grant?: Grant, extra: object = {}): AnyAgent {
  return trying('host', { grant, script: asksThenSays('done'), extra: { subagents: { ask: below }, ...extra } })
}
