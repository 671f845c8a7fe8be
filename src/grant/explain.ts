import { type Decision, decide, type Voice, voiceOf } from './decide.ts'
import type { Layer } from './grant.ts'
import { readRequest, requestText } from './request.ts'

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
