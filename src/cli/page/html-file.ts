// A run as one HTML file: the inspector and its data in one. It opens without a server, and asks nobody for anything.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parseJson } from '../../core/base/json.ts'
import { CliError } from '../command/command.ts'
import type { CollectedRun } from './collect-run.ts'

/** Writes the text of the file. */
export function htmlOf({ title, ...data }: CollectedRun): string {
  const { script, style } = readPage()
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(style)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types legate',
  ].join('; ')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${asText(title)}</title>
<style>${style}</style>
</head>
<body>
<div id="root"></div>
<script type="application/json" id="legate-run">${asData(data)}</script>
<script type="module">${script}</script>
</body>
</html>
`
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}

function asText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

/** JSON in which nothing can end the element: every `<` is written as an escape. */
function asData(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c')
}

interface Page {
  readonly script: string
  readonly style: string
}

/** The page as one script and one style sheet, as the build made it. */
function readPage(): Page {
  const folder = path.dirname(createRequire(import.meta.url).resolve('legate/package.json'))
  const file = path.join(folder, 'dist/web/file.json.gz')
  try {
    const read = parseJson(gunzipSync(readFileSync(file)).toString())
    const { script, style } = Object(read.ok ? read.value : null) as Page
    return { script: script.replaceAll('</script', '<\\/script').replaceAll('<!--', '\\x3c!--'), style }
  } catch (error) {
    throw new CliError(`The inspector is not built: ${file} cannot be read. ${String(error)}`)
  }
}
