import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

/**
 * What happened to others, and must not happen here. Each has a file of its own in `incidents/`; those with the same
 * cause share one, named after the first.
 */
const incidents = [
  ['CVE-2026-32048', 'GHSA-p7gr-f84w-hqg5', 'GHSA-474h-prjg-mmw3', 'CVE-2026-44997', 'GHSA-q3jj-46pq-826r'],
  ['GHSA-4w7m-58cg-cmff', 'GHSA-wcxr-59v9-rxr8', 'opencode task_id'],
  ['26514', '26597', '27201', '31696', '33223', '45078', '28052'],
  ['goose 11778', '5140', 'agentscope-java 2477', 'codex 40278', '12713', 'deepagents'],
  ['40343', '43142', '20264', '18950', '83421', '2.1.186', '2.1.178', '2.1.172', '2.1.154', '2.1.153', '2.1.212'],
  ['openJiuwen 963', 'agentao 255', 'joule 362', 'pawwork 1132', 'koda 852'],
  ['72732', '72566', '69332', '68430', '82380', 'ServiceNow', 'Unit 42', 'gemini-cli 28470'],
  ['2.1.77', '2.1.110', '2.1.223', '2.1.234', 'Adversa', 'vercel/ai 17494', 'gemini-cli 22893'],
  ['openworker 443', 'agent-framework 3938', 'crewAI 5802', 'leviath 96', 'PraisonAI 4217', 'vertz 2835'],
  ['CVE-2025-53109', 'CVE-2025-53110', 'CVE-2026-25724', 'CVE-2026-39861', 'CVE-2026-25725', 'CVE-2026-46406'],
  ['CVE-2026-35615', 'CVE-2026-28482', 'entireio 1365', 'CVE-2025-59532', 'goose recipe loader'],
  ['1.0.120', '2.1.6', '2.1.7', '2.1.90', '2.1.98', '2.1.145', '2.1.221', '2.1.232'],
].flat()

test.each(incidents)('%s is named by a test that would fail if it happened here', (incident) => {
  const named = tests.filter(({ text }) => isNamed(text, incident))

  expect(named.map(({ file }) => file)).not.toEqual([])
})

/** 2.1.7 is not named by 2.1.77. */
function isNamed(text: string, incident: string): boolean {
  return text
    .split(incident)
    .slice(1)
    .some((rest) => !/^\d/.test(rest))
}

const tests = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts') && file !== path.basename(import.meta.filename))
  .map((file) => ({ file, text: readFileSync(path.join(import.meta.dirname, file), 'utf8') }))
