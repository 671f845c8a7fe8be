import { expect, test } from 'vitest'
import { decide, type Verdict } from '../../src/core/grant/decide.ts'
import type { Layer } from '../../src/core/grant/grant.ts'
import { type Request, readRequest, requestText } from '../../src/core/grant/request.ts'

const TOOLS = ['read', 'write', 'deploy', 'pay']
const PATHS = ['/docs/a', '/workspace/a', '/workspace/b/c']
const VERDICTS: readonly Verdict[] = ['allow', 'ask', 'deny']

test.each<[string, string, readonly string[]]>([
  ['4 tools x 3 verdicts x depth 3', 'tool', TOOLS],
  ['3 paths x 3 verdicts x depth 3', 'file.write', PATHS],
])('I1, I2: the whole of a small world, %s', (_name, domain, names) => {
  const worlds = worldsOf(domain, names)
  const requests = names.map((name) => readRequest(`${domain}:${name}`))
  let chains = 0
  for (const root of worlds) {
    for (const middle of worlds) chains += worlds.filter((leaf) => checkWorld([root, middle, leaf], requests)).length
  }
  expect(chains).toBe(3 ** (names.length * 3))
})

interface World {
  readonly layer: Layer
  readonly names: readonly string[]
  /** How severe it is about each name. */
  readonly says: readonly number[]
}

function checkWorld(worlds: readonly [World, World, World], requests: readonly Request[]): boolean {
  const layers = [worlds[0].layer, worlds[1].layer, worlds[2].layer]
  for (const [at, request] of requests.entries()) {
    const strictest = Math.max(worlds[0].says[at] ?? 2, worlds[1].says[at] ?? 2, worlds[2].says[at] ?? 2)
    if (decide(layers, request).verdict === VERDICTS[strictest]) continue
    throw new Error(`${requestText(request)} is not ${VERDICTS[strictest]} in ${JSON.stringify(layers)}`)
  }
  return true
}

/** Every way in which one layer can speak of these names: by name, by silence, by a star. */
function worldsOf(domain: string, names: readonly string[]): World[] {
  return Array.from({ length: 3 ** names.length }, (_, number) => {
    const says = names.map((_name, at) => Math.floor(number / 3 ** at) % 3)
    const ruled = (verdict: number) => names.filter((_name, at) => says[at] === verdict).map((it) => `${domain}:${it}`)
    const isStarred = number % 2 === 0
    const layer: Layer = {
      by: `world ${number}`,
      allow: isStarred ? [`${domain}:**`] : ruled(0),
      ask: ruled(1),
      deny: isStarred ? ruled(2) : [],
    }
    return { layer, names, says }
  })
}
