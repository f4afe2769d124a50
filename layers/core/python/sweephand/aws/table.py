"""One DynamoDB table: the few calls that the stores make, all strongly consistent, none of them a scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sweephand.aws.calls import ROUNDS_MAX, Item, asking, chunks
from sweephand.errors import Unavailable

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

GETS_MAX: Final = 100
WRITES_MAX: Final = 25
ABSENT: Final = "attribute_not_exists(pk)"
"""The condition of a put that must not replace anything."""


class Table:
    """A table with the keys `pk` and `sk`."""

    def __init__(self, client: DynamoDBClient, name: str) -> None:
        self.client = client
        self.name = name

    def get(self, pk: str, sk: str) -> Item | None:
        with asking(f"get from {self.name}"):
            answer = self.client.get_item(TableName=self.name, Key=_key(pk, sk), ConsistentRead=True)
        return answer.get("Item")

    def query(
        self, pk: str, *, low: str, high: str, newest_first: bool = False, page: int | None = None
    ) -> Iterator[Item]:
        """The items of a partition with low <= sort key < high; pages are fetched as they are needed."""
        if low >= high:
            return  # DynamoDB refuses bounds that are the wrong way round
        partition = "pk = :pk"
        within = "sk BETWEEN :low AND :high"
        request: dict[str, Any] = {
            "TableName": self.name,
            "KeyConditionExpression": f"{partition} AND {within}",
            "ExpressionAttributeValues": {":pk": {"S": pk}, ":low": {"S": low}, ":high": {"S": high}},
            "ScanIndexForward": not newest_first,
            "ConsistentRead": True,
        }
        if page is not None:
            request["Limit"] = page + 1  # BETWEEN includes the upper bound, which may be there
        while True:
            with asking(f"query {self.name}"):
                answer = self.client.query(**request)
            yield from (item for item in answer["Items"] if item["sk"]["S"] != high)
            if not answer.get("LastEvaluatedKey"):
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def count(self, pk: str, condition: str) -> int:
        """How many items of a partition fulfil a condition; all of them are paid for, by size."""
        request: dict[str, Any] = {
            "TableName": self.name,
            "KeyConditionExpression": "pk = :pk",
            "FilterExpression": condition,
            "ExpressionAttributeValues": {":pk": {"S": pk}},
            "Select": "COUNT",
            "ConsistentRead": True,
        }
        total = 0
        while True:
            with asking(f"count in {self.name}"):
                answer = self.client.query(**request)
            total += answer["Count"]
            if not answer.get("LastEvaluatedKey"):
                return total
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def put(self, item: Item, condition: str | None = None, **values: Item) -> None:
        """Put the whole item; `Lost` where the condition does not hold, with what is there instead."""
        with asking(f"put to {self.name}"):
            self.client.put_item(**self.to_put(item, condition, **values))

    def to_put(self, item: Item, condition: str | None = None, **values: Item) -> Any:
        """The request of such a put, alone or within a transaction; `before=…` is `:before` in the condition."""
        request: dict[str, Any] = {"TableName": self.name, "Item": item}
        if condition is not None:
            request |= {"ConditionExpression": condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        if values:
            request["ExpressionAttributeValues"] = {f":{name}": value for name, value in values.items()}
        return request

    def delete(self, pk: str, sk: str, condition: str, **values: Item) -> None:
        """Delete an item; `Lost` where the condition does not hold, with what is there instead, if anything is."""
        with asking(f"delete from {self.name}"):
            self.client.delete_item(**self.to_delete(pk, sk, condition, **values))

    def to_delete(self, pk: str, sk: str, condition: str, **values: Item) -> Any:
        """The request of such a delete, alone or within a transaction."""
        return {
            "TableName": self.name,
            "Key": _key(pk, sk),
            "ConditionExpression": condition,
            "ExpressionAttributeValues": {f":{name}": value for name, value in values.items()},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def transact(self, what: str, writes: Sequence[Any]) -> None:
        """All of these writes or none, of any tables; `Lost` where the condition of the first does not hold."""
        with asking(what):
            self.client.transact_write_items(TransactItems=writes)

    def update(
        self,
        pk: str,
        sk: str,
        fields: Mapping[str, Item | None],
        condition: str,
        **values: Item,
    ) -> None:
        """Set these fields, remove those that are None, touch no other; `Lost` where the condition does not hold."""
        kept = {name: value for name, value in fields.items() if value is not None}
        gone = [name for name in fields if name not in kept]
        expression = "SET " + ", ".join(f"#{name} = :{name}" for name in kept)
        if gone:
            expression += " REMOVE " + ", ".join(f"#{name}" for name in gone)
        with asking(f"update {self.name}"):
            self.client.update_item(
                TableName=self.name,
                Key=_key(pk, sk),
                UpdateExpression=expression,
                ConditionExpression=condition,
                ExpressionAttributeNames={f"#{name}": name for name in fields},
                ExpressionAttributeValues={f":{name}": value for name, value in (kept | values).items()},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )

    def amend(self, pk: str, sk: str, expression: str, condition: str, **values: Item) -> Item:
        """The item after an update as DynamoDB writes one; `Lost` where the condition does not hold."""
        with asking(f"update {self.name}"):
            answer = self.client.update_item(
                TableName=self.name,
                Key=_key(pk, sk),
                UpdateExpression=expression,
                ConditionExpression=condition,
                ExpressionAttributeValues={f":{name}": value for name, value in values.items()},
                ReturnValues="ALL_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        return answer["Attributes"]

    def put_all(self, items: Iterable[Item]) -> None:
        """Unconditional puts; of two with one key, the last counts."""
        by_key = {(item["pk"]["S"], item["sk"]["S"]): item for item in items}
        self._write_all([{"PutRequest": {"Item": item}} for item in by_key.values()])

    def delete_all(self, keys: Iterable[tuple[str, str]]) -> None:
        """Unconditional deletes."""
        self._write_all([{"DeleteRequest": {"Key": _key(pk, sk)}} for pk, sk in dict.fromkeys(keys)])

    def get_all(self, keys: Sequence[tuple[str, str]]) -> list[Item]:
        """The items that exist, in the order of the keys."""
        found: dict[tuple[str, str], Item] = {}
        for chunk in chunks(keys, GETS_MAX):
            left: Any = [_key(pk, sk) for pk, sk in chunk]
            for _ in range(ROUNDS_MAX):
                with asking(f"read from {self.name}"):
                    answer = self.client.batch_get_item(
                        RequestItems={self.name: {"Keys": left, "ConsistentRead": True}}
                    )
                for item in answer["Responses"].get(self.name, []):
                    found[item["pk"]["S"], item["sk"]["S"]] = item
                unread: Any = answer.get("UnprocessedKeys", {})
                left = unread.get(self.name, {}).get("Keys")
                if not left:
                    break
            else:
                raise Unavailable(f"DynamoDB left {len(left)} items of {self.name} unread.")
        return [found[key] for key in keys if key in found]

    def _write_all(self, requests: Sequence[Any]) -> None:
        for chunk in chunks(requests, WRITES_MAX):
            left = chunk
            for _ in range(ROUNDS_MAX):
                with asking(f"write to {self.name}"):
                    answer = self.client.batch_write_item(RequestItems={self.name: left})
                left = list(answer.get("UnprocessedItems", {}).get(self.name, []))
                if not left:
                    break
            else:
                raise Unavailable(f"DynamoDB left {len(left)} items of {self.name} unwritten.")


def _key(pk: str, sk: str) -> Any:
    return {"pk": {"S": pk}, "sk": {"S": sk}}
