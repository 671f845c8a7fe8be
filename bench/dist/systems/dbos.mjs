// DBOS alone: a workflow, a child workflow, and three steps that stand for the calls of models.

import { peer } from '../peers.mjs'

export async function open({ url, schema }) {
  const { DBOS } = await peer('dbos', '@dbos-inc/dbos-sdk')
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: url,
    systemDatabaseSchemaName: schema,
    systemDatabasePoolSize: 8,
    executorID: `e${process.pid}`,
    logLevel: 'error',
    runAdminServer: false,
  })
  const sub = DBOS.registerWorkflow(() => DBOS.runStep(async () => 'done', { name: 'model' }), { name: 'sub' })
  const think = async (told) => (told.length > 0 ? { text: 'finished' } : { calls: true })
  const host = DBOS.registerWorkflow(
    async (count) => {
      const told = []
      for (;;) {
        const { text } = await DBOS.runStep(() => think(told), { name: 'model' })
        if (text !== undefined) return text
        const started = await Promise.all(Array.from({ length: count }, () => DBOS.startWorkflow(sub)()))
        told.push(...(await Promise.all(started.map((handle) => handle.getResult()))))
      }
    },
    { name: 'host' },
  )
  await DBOS.launch()
  const run = async (count) => {
    if ((await host(count)) !== 'finished') throw new Error('DBOS gave another answer.')
  }
  return { delegate: () => run(1), fanOut: () => run(100) }
}
