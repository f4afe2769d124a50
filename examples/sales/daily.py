"""The sales of each region, loaded side by side, and their total."""

from shop.orders import orders_of

from sweephand import group, job, params, step, task


@job(schedule="0 6 * * 1-5", timezone="Europe/Berlin", params={"regions": ["eu", "us"]}, timeout="5m", tags=["finance"])
def daily_sales():
    """Sum up the sales of every region."""
    with group("ingest"):
        loaded = load.map(params.regions)
    summed = total(loaded, currency="EUR")
    decide(summed.sum) >> [celebrate(summed), step("regret", command=["echo", f"only {summed.sum}"])]


@task(retries=2, timeout="1m")
def load(region: str) -> dict:
    """One region's orders."""
    amounts = orders_of(region)
    print(f"{region}: {len(amounts)} orders")
    return {"region": region, "sum": sum(amounts)}


@task
def total(loaded: list[dict], currency: str) -> dict:
    return {
        "sum": sum(one["sum"] for one in loaded),
        "currency": currency,
        "regions": [one["region"] for one in loaded],
    }


@task.branch
def decide(amount: int) -> str:
    return "celebrate" if amount > 100 else "regret"


@task
def celebrate(summed: dict) -> str:
    return f"{summed['sum']} {summed['currency']} from {' and '.join(summed['regions'])}"
