import { writeFileSync } from 'node:fs'
import path from 'node:path'

/**
 * Writes `{ passed, failed, skipped: [{ project, file, test, reason }], triedAgain: [{ project, file, test, reason }] }` to the file
 * named by LEGATE_REPORT. What was tried again has passed then; the reason is what went wrong before.
 */
export default class Reporter {
  onTestRunEnd(modules, unhandledErrors) {
    const target = process.env.LEGATE_REPORT
    if (!target) return
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const broken = modules
      .flatMap((module) => [module, ...module.children.allSuites()])
      .flatMap((part) => part.errors())
    const report = {
      passed: tests.filter((test) => test.result().state === 'passed').length,
      failed: tests.filter((test) => test.result().state === 'failed').length + broken.length + unhandledErrors.length,
      skipped: tests.filter((test) => test.result().state === 'skipped').map(describeSkip),
      triedAgain: tests.filter((test) => test.diagnostic()?.flaky === true).map(describeRetry),
    }
    writeFileSync(target, JSON.stringify(report))
  }
}

function describeSkip(test) {
  const { note } = test.result()
  return { ...describe(test), reason: note ?? (test.options.mode === 'todo' ? 'not written yet' : 'no reason given') }
}

function describeRetry(test) {
  const [error] = test.result().errors ?? []
  return { ...describe(test), reason: firstLine(error?.message ?? 'it did not say why') }
}

function describe(test) {
  const file = path.relative(process.cwd(), test.module.moduleId)
  return { project: test.project.name, file, test: test.fullName }
}

function firstLine(text) {
  return text.split('\n', 1)[0]
}
