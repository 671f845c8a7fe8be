#!/usr/bin/env node
// Stands in for npx, uvx, uv and docker: is the MCP server that its arguments name, and fetches nothing. A package that is
// installed runs itself. Any other is a server with the tools of packages.mjs, made with the SDK of the official ones.
import { appendFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { PACKAGES, packageOf } from './packages.mjs'

const [, program, ...args] = process.argv
const name = packageOf(args)
const require = createRequire(import.meta.url)

const line = { pid: process.pid, program: path.basename(program), args }
appendFileSync(path.join(process.env.HOME, 'started.jsonl'), `${JSON.stringify(line)}\n`)

if (name === '@modelcontextprotocol/server-filesystem') await runInstalled()
else if (name in PACKAGES) await serve(PACKAGES[name])
else fail(`there is no package ${name}`)

async function runInstalled() {
  process.argv = [process.argv[0], program, ...args.slice(args.indexOf(name) + 1)]
  await import(pathToFileURL(path.join(path.dirname(require.resolve(`${name}/package.json`)), 'dist/index.js')).href)
}

async function serve(tools) {
  const { McpServer } = await sdk('server/mcp.js')
  const { StdioServerTransport } = await sdk('server/stdio.js')
  const { z } = await sdk('zod')
  const server = new McpServer({ name, version: '1.0.0' })
  for (const tool of tools) {
    server.registerTool(tool, { description: `Does ${tool}.`, inputSchema: { query: z.string() } }, ({ query }) => {
      const secrets = Object.keys(process.env).filter((key) => /API_KEY|AUTH_HEADER/.test(key))
      return {
        content: [
          { type: 'text', text: `${tool} of ${name} heard ${query}, knows ${secrets.join(' ') || 'no secret'}` },
        ],
      }
    })
  }
  await server.connect(new StdioServerTransport())
}

/** As the official servers load it. */
async function sdk(file) {
  const official = createRequire(require.resolve('@modelcontextprotocol/server-everything/package.json'))
  return import(pathToFileURL(official.resolve(file === 'zod' ? file : `@modelcontextprotocol/sdk/${file}`)).href)
}

function fail(message) {
  process.stderr.write(`${path.basename(program)}: ${message}\n`)
  process.exitCode = 1
}
