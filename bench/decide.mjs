// node bench/decide.mjs: how long one decision takes, with 3 layers of 20 rules each. Needs dist (npm run build).

import { decide } from 'legate/grant'

const LIMIT_US = 5
const ROUNDS = 7
const DECISIONS = 200_000

const rules = (domain, at) => Array.from({ length: 14 }, (_, n) => `${domain}:team${at}/${n}/*`)
const layer = (by, at) => ({
  by,
  allow: [...rules('tool', at), 'tool:read_*', 'tool:*_file'],
  ask: ['tool:pay_*', 'file.write:/workspace/**'],
  deny: ['tool:deploy', 'file.*:/internal/**'],
})
const layers = ['the runtime', 'host', 'worker'].map(layer)
const cases = {
  'allowed by the last rule of each layer': ['tool', 'write_file'],
  'denied by the first layer': ['tool', 'deploy'],
  'denied because nothing allows it': ['tool', 'unheard_of'],
  'a path denied by its area': ['file.read', '/internal/keys/a/b/c.txt'],
}

console.log(`${layers.length} layers of ${Object.values(layers[0]).flat().length - 1} rules, ${process.version}`)
let worst = 0
for (const [name, [domain, asked]] of Object.entries(cases)) {
  const us = Math.min(...Array.from({ length: ROUNDS }, () => measure(domain, asked)))
  worst = Math.max(worst, us)
  console.log(`${us.toFixed(2).padStart(6)} us  ${name}: ${decide(layers, domain, asked).verdict}`)
}
if (worst > LIMIT_US) {
  console.error(`A decision may take ${LIMIT_US} us at most.`)
  process.exitCode = 1
}

/** A busy machine only adds time, so the fastest round says most about the code. */
function measure(domain, name) {
  const start = process.hrtime.bigint()
  let denied = 0
  for (let n = 0; n < DECISIONS; n++) if (decide(layers, domain, name).verdict === 'deny') denied++
  if (denied !== 0 && denied !== DECISIONS) throw new Error('one question, two answers')
  return Number(process.hrtime.bigint() - start) / 1_000 / DECISIONS
}
