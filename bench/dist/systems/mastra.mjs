// Mastra with its storage on PostgreSQL: a workflow that runs another one, with a snapshot of each step. It needs Node 22.

import { peer } from '../peers.mjs'

export async function open({ url, schema }) {
  const { Mastra } = await peer('mastra', '@mastra/core/mastra')
  const { createStep, createWorkflow } = await peer('mastra', '@mastra/core/workflows')
  const { PostgresStore } = await peer('mastra', '@mastra/pg')
  const { z } = await peer('mastra', 'zod')
  const any = { inputSchema: z.object({ text: z.string() }), outputSchema: z.object({ text: z.string() }) }
  const step = (id, text) => createStep({ id, ...any, execute: async () => ({ text }) })
  const sub = createWorkflow({ id: 'sub', ...any })
    .then(step('work', 'done'))
    .commit()
  const host = createWorkflow({ id: 'host', ...any })
    .then(step('delegate', 'work'))
    .then(sub)
    .then(step('finish', 'finished'))
    .commit()
  const storage = new PostgresStore({ id: 'bench', connectionString: url, schemaName: schema })
  await storage.init()
  const mastra = new Mastra({ storage, workflows: { host, sub }, logger: false })
  return {
    delegate: async () => {
      const run = await mastra.getWorkflow('host').createRun()
      const { status, result } = await run.start({ inputData: { text: 'go' } })
      if (status !== 'success' || result.text !== 'finished') throw new Error(`Mastra gave another answer: ${status}.`)
    },
  }
}
