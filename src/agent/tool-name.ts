import { nodeCrypto } from '../base/node-crypto.ts'

const LONGEST = 64
const LONGEST_STEM = 50

/**
 * The tool name of an agent that was given without one: `call_` and the agent's name in characters every provider
 * takes. Names that lose characters or are too long get a short digest, so that two of them stay apart.
 */
export function toolNameOf(agentName: string): string {
  const lower = agentName.toLowerCase()
  const stem = lower
    .replace(/[^a-z0-9_-]+/g, '_')
    .replace(/_+/g, '_')
    .replace(/^_|_$/g, '')
  const name = `call_${stem === '' ? 'agent' : stem}`
  const isExact = /^[a-z0-9_\-\s]*$/.test(lower)
  if (isExact && name.length <= LONGEST) return name
  const withDigest = `${name}_${digest(agentName)}`
  if (withDigest.length <= LONGEST) return withDigest
  return `${`call_${stem.slice(0, LONGEST_STEM)}`.replace(/_$/, '')}_${digest(agentName)}`
}

/** First 8 digits of the name's version 3 UUID without a namespace: the form other programs derive. */
function digest(name: string): string {
  return nodeCrypto().createHash('md5').update(name, 'utf8').digest('hex').slice(0, 8)
}
