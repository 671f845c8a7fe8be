// The systems of others. They are no dependencies of this project: npm puts each into a folder of its own when it is measured.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const PACKAGES = {
  dbos: { '@dbos-inc/dbos-sdk': '5.3.0', pg: '8.16.3' },
  // Newer ones of LangGraph's parts need versions of each other that npm does not have.
  langgraph: {
    '@langchain/core': '1.2.13',
    '@langchain/langgraph': '1.4.18',
    '@langchain/langgraph-checkpoint': '1.1.5',
    '@langchain/langgraph-checkpoint-postgres': '1.0.5',
    '@langchain/langgraph-sdk': '1.12.0',
    zod: '4.1.12',
  },
  mastra: { '@mastra/core': '1.71.0', '@mastra/pg': '1.27.1', node: '24', zod: '4.1.12' },
}

/** A file beside the packages, so that they are found as they would be by a program there. */
const LOADER = 'load.mjs'

export const PEERS = Object.keys(PACKAGES)

/** LEGATE_PEERS names a folder that has them already. */
const home = process.env.LEGATE_PEERS ?? path.join(tmpdir(), 'legate-dist-peers')

/** Loads a module of a peer. */
export async function peer(name, module) {
  const { load } = await import(pathToFileURL(path.join(home, name, LOADER)).href)
  return load(module)
}

/** Installs a peer where it is missing. Gives the Node that it runs on. */
export function installPeer(name) {
  const folder = path.join(home, name)
  if (!existsSync(path.join(folder, 'node_modules'))) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: PACKAGES[name] }))
    const args = ['install', '--no-audit', '--no-fund', '--legacy-peer-deps', '--loglevel=error']
    const { status, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8', timeout: 600_000 })
    if (status !== 0) throw new Error(`npm gave no ${name}: ${stderr}`)
  }
  writeFileSync(path.join(folder, LOADER), 'export const load = (module) => import(module)\n')
  const own = path.join(folder, 'node_modules/node/bin/node')
  return existsSync(own) ? own : process.execPath
}
