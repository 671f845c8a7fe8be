import { toModel } from '../../model/named/to-model.ts'
import type { Prompt } from '../../prompt/prompt.ts'
import { type AgentCore, markAgent } from '../definition/agent.ts'
import type { ExtensionCore } from '../definition/extension.ts'
import { type Repair, readRepair } from '../definition/repair.ts'

const bases: WeakMap<AgentCore, AgentCore> = new WeakMap()

/**
 * The agent for one request: what the prompt says of output, model and settings is put over its own. It is no other
 * agent: its name, its hash and what it may do are the same.
 */
export function askedAgent(agent: AgentCore, prompt: Prompt, { extensions = [], repair }: OfRequest = {}): AgentCore {
  const { output, model, settings, providerOptions } = prompt.toRequest()
  const isOther = saysOutput(prompt)
  const answer = isOther ? output : agent.output
  const own = model === null ? agent.model : (toModel(model) ?? agent.model)
  const asked: AgentCore = markAgent({
    ...agent,
    asked: prompt,
    model: own,
    settings: { ...agent.settings, ...settings, ...forProvider(agent, own, providerOptions) },
    output: answer,
    repair:
      readRepair(repair, answer, `a request to "${agent.name}"`) ?? (isOther ? ofOther(agent.repair) : agent.repair),
    eager: isOther ? null : agent.eager,
    extensions: extensions.length === 0 ? agent.extensions : [...extensions, ...agent.extensions],
  })
  bases.set(asked, baseOf(agent))
  return asked
}

/** What the request says itself. */
export interface OfRequest {
  readonly extensions?: readonly ExtensionCore[]
  readonly repair?: Repair | undefined
}

/** What is ensured of an agent's own answer says nothing of another. */
function ofOther(repair: Repair | null): Repair | null {
  return repair === null ? null : { ...repair, ensure: [] }
}

/** The agent that was asked. */
export function baseOf(agent: AgentCore): AgentCore {
  return bases.get(agent) ?? agent
}

/** Does the prompt itself tell what the answer must be? */
export function saysOutput(prompt: Prompt): boolean {
  return prompt.get('output') !== undefined || prompt.get('output_format') !== undefined
}

/** What no setting is known for is for the model's own provider. */
function forProvider(
  { settings }: AgentCore,
  model: AgentCore['model'],
  options: ReturnType<Prompt['toRequest']>['providerOptions'],
): Pick<AgentCore['settings'], 'providerOptions'> {
  if (Object.keys(options).length === 0) return {}
  const [provider = ''] = (model?.id ?? '').split('/')
  if (provider === '') return {}
  const given = settings.providerOptions?.[provider]
  const before = typeof given === 'object' && given !== null && !Array.isArray(given) ? given : {}
  return { providerOptions: { ...settings.providerOptions, [provider]: { ...before, ...options } } }
}
