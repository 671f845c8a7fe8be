import { InputError } from '../base/error.ts'
import { type Decision, decide, type Voice, voiceOf } from './decide.ts'
import { isDomain, type Layer } from './grant.ts'
import { readRequest, requestText } from './request.ts'
import { splitRule } from './rule.ts'

/** A decision with every voice that was heard. */
export interface Explanation extends Decision {
  /** What was asked for, such as `tool:deploy`. */
  readonly request: string
  readonly voices: readonly (Voice & { readonly by: string })[]
  /** All of it in words, one layer a line. */
  readonly text: string
}

/** Why a request is allowed, asked for or denied: which layer, which rule, who set it. Decides as `decide` does. */
export function explain(layers: readonly Layer[], asked: string): Explanation {
  checkDomain(asked)
  const read = readRequest(asked)
  const request = requestText(read)
  const decision = decide(layers, read)
  const voices = layers.map((layer) => ({ by: layer.by, ...safely(() => voiceOf(layer, read)) }))
  const lines = voices.map(({ by, verdict, rule }) => `  ${by}: ${words({ verdict, rule })}`)
  return {
    ...decision,
    request,
    voices,
    text: [`${request}: ${decision.verdict}, ${decision.reason}`, ...lines].join('\n'),
  }
}

/** No rule is about what no domain has: any answer would be about something else than was meant. */
function checkDomain(asked: string): void {
  if (typeof asked === 'string' && isDomain(splitRule(asked).domain)) return
  const message = `${JSON.stringify(asked)} is no request: write one such as tool:deploy, agent:expert, model:*, exec:git status, net:example.com or file.read:/workspace/a.txt.`
  throw new InputError('invalid_input', message)
}

function words({ verdict, rule }: Voice): string {
  if (rule !== null) return `${verdict} by ${rule}`
  return verdict === 'allow' ? 'says nothing' : `${verdict}, no rule allows it`
}

function safely(ask: () => Voice): Voice {
  try {
    return ask()
  } catch {
    return { verdict: 'deny', rule: null }
  }
}
