// One process of the benchmark: opens a system and does with it what its parent says.
//   node worker.mjs '{"system", "url", "schema", ...}', with a channel to its parent

import { quantile } from '../server/measure.mjs'

const { system, ...options } = JSON.parse(process.argv[2] ?? '{}')
const { open } = await import(`./systems/${system}.mjs`)
const opened = await open({ ...options, tell: (told) => process.send?.({ told }) })

const JOBS = {
  /** Keeps so many of something in flight for so long. */
  repeat: async ({ name, seconds, inFlight }) => {
    const end = performance.now() + seconds * 1_000
    const times = []
    const one = async () => {
      while (performance.now() < end) {
        const begun = performance.now()
        await opened[name]()
        times.push(performance.now() - begun)
      }
    }
    await Promise.all(Array.from({ length: inFlight }, one))
    return { done: times.length, p50: quantile(times, 0.5), p99: quantile(times, 0.99) }
  },
  once: ({ name, argument }) => opened[name](argument),
  figures: () => {
    const { user, system: kernel } = process.cpuUsage()
    return { cpuMs: (user + kernel) / 1_000, rss: process.memoryUsage().rss }
  },
}

process.on('message', ({ id, job, asked }) => {
  Promise.resolve()
    .then(() => JOBS[job](asked))
    .then(
      (answer) => process.send?.({ id, answer }),
      (error) => process.send?.({ id, error: error.stack }),
    )
})
process.on('disconnect', () => process.exit(0))
process.send?.({ told: 'open' })
